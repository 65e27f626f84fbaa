// Configured keeps a client's limits in a YAML file, and changes them while calls wait. A
// first file allows 2 calls a second. A second one has a mistake, which is reported with its
// path and changes nothing. A third one allows 40.
//
//	go run ./configured
//
// It prints what it has applied, and how many calls were served in each half second. It is
// done after about 3 s, and exits with 1 if a call failed. The file is a temporary one, unless
// -config names it: then edit it meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/program"
)

// files are the configurations, one after the other.
var files = []string{`
limits: [2/s burst 1]
line: {maxWait: 1m}
`, `
limits: [40/q burst 4]
line: {maxWait: 1m}
`, `
limits: [40/s burst 4]
line: {maxWait: 1m}
routes:
- match: GET /bulk
  limits: [5/s burst 1]
`}

func main() { program.Main(run, os.Interrupt) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("configured", flag.ContinueOnError)
	path := flags.String("config", "", "`file` to watch, in YAML or JSON; if empty, a temporary one that changes by itself")
	length := flags.Duration("for", 3*time.Second, "how long to call")
	if err := program.Parse(flags, args, stdout); err != nil {
		return program.Usage("configured", err, stderr)
	}
	ctx, cancel := context.WithTimeout(ctx, *length)
	defer cancel()
	if *path == "" {
		dir, err := os.MkdirTemp("", "configured")
		if err != nil {
			return program.Fail("configured", err, stderr)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary one
		*path = filepath.Join(dir, "limits.yaml")
		if err := replace(*path, files[0]); err != nil {
			return program.Fail("configured", err, stderr)
		}
		go edit(ctx, *path, *length/4)
	}
	var transport weir.Transport
	if err := load(*path, &transport); err != nil { // before the first use
		return program.Fail("configured", err, stderr)
	}
	var printing sync.Mutex
	go watch(ctx, *path, &transport, func(err error) {
		printing.Lock()
		defer printing.Unlock()
		if err != nil {
			fmt.Fprintln(stdout, "nothing changed:", err)
			return
		}
		fmt.Fprintln(stdout, "applied")
	})
	if call(ctx, &transport, func(served int64) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Fprintf(stdout, "served %d calls in half a second\n", served)
	}) > 0 {
		return program.ExitFailed
	}
	return 0
}

// edit replaces the file by the later ones.
func edit(ctx context.Context, path string, apart time.Duration) {
	for _, text := range files[1:] {
		select {
		case <-time.After(apart):
			replace(path, text) //nolint:errcheck // the file stays as it is
		case <-ctx.Done():
			return
		}
	}
}

// replace replaces a file as a whole, so that no reader sees a half of it.
func replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// call calls a vendor from eight workers until ctx ends, and prints each half second how many
// calls were served. It returns how many failed.
func call(ctx context.Context, transport *weir.Transport, show func(served int64)) int64 {
	vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer vendor.Close()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var served, failed atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, vendor.URL, http.NoBody)
				if err != nil {
					panic(err) // the URL is the server's own
				}
				resp, err := client.Do(req)
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
						failed.Add(1)
					}
					return // no later call could be in time
				}
				resp.Body.Close()
				served.Add(1)
			}
		})
	}
	for ctx.Err() == nil {
		select {
		case <-time.After(500 * time.Millisecond):
			show(served.Swap(0))
		case <-ctx.Done():
		}
	}
	workers.Wait()
	return failed.Load()
}
