package hostlocal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Two processes of one host share 10 calls a second. Here they are two stores.
func Example() {
	dir := filepath.Join(os.TempDir(), fmt.Sprint("weir-example-", os.Getpid()))
	defer os.RemoveAll(dir)

	var queues []*shaping.Queue
	for range 2 {
		store := &hostlocal.Store{Dir: dir}
		defer store.Close()
		limiter, err := store.Limiter("api.example.com", throttle.LeakyBucket(10, time.Second))
		if err != nil {
			fmt.Println(err)
			return
		}
		queues = append(queues, shaping.NewQueue(limiter))
	}

	began := time.Now()
	for i := range 4 {
		if err := queues[i%2].Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("four calls took 300ms or more:", time.Since(began) >= 299*time.Millisecond)
	// Output: four calls took 300ms or more: true
}
