package distributed_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/needs"
)

// replicaEnv makes the test binary a replica of a fleet: see serve.
const replicaEnv = "WEIR_FLEET_REPLICA"

func TestMain(m *testing.M) {
	redis.SetLogger(&driver)
	if os.Getenv(replicaEnv) != "" {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
	if work := os.Getenv(callerEnv); work != "" {
		os.Exit(callOn(work))
	}
	flag.Parse()
	unlessGiven("test.parallel", together)
	debug.SetGCPercent(800) // scripts in bubbles allocate much and keep little
	goleak.VerifyTestMain(m, goleak.Cleanup(needs.Exit))
}

// orShort returns the second of two sizes of a test with -short, which the race detector runs: it
// needs a run that is whole, not one that is long.
func orShort[T any](whole, short T) T {
	if testing.Short() {
		return short
	}
	return whole
}

// unlessGiven sets a flag that is absent from the command line.
func unlessGiven(name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}

// driver receives what the Redis client logs by itself in all tests, and checks only that it
// contains no password.
var driver discreet

type discreet struct{ told atomic.Value }

func (d *discreet) Printf(_ context.Context, format string, v ...any) {
	if text := fmt.Sprintf(format, v...); strings.Contains(text, password) {
		d.told.Store(text)
	}
}
