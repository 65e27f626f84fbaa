package distributed_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// replicaEnv makes the test binary a replica of a fleet: see serve.
const replicaEnv = "WEIR_FLEET_REPLICA"

func TestMain(m *testing.M) {
	redis.SetLogger(&driver)
	if os.Getenv(replicaEnv) != "" {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
	sleepTogether()
	goleak.VerifyTestMain(m)
}

// sleepTogether lets more parallel tests run than there are processors, for
// those of a fleet wait nearly all the time.
func sleepTogether() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "8") // it is a number
	}
}

// driver hears what the Redis client logs by itself, for all tests: nothing of
// it is of interest, but that it holds no password.
var driver discreet

type discreet struct{ told atomic.Value }

func (d *discreet) Printf(_ context.Context, format string, v ...any) {
	if text := fmt.Sprintf(format, v...); strings.Contains(text, password) {
		d.told.Store(text)
	}
}
