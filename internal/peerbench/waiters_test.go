package peerbench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// waiters is how many callers BenchmarkWaiters puts in line.
const waiters = 100_000

// spec, in the environment, makes this test binary the process in which callers wait: whose line it
// is, and what contexts they have.
const spec = "PEERBENCH_WAITERS"

func TestMain(m *testing.M) {
	who, contexts, child := strings.Cut(os.Getenv(spec), " ")
	if !child {
		os.Exit(m.Run())
	}
	if err := json.NewEncoder(os.Stdout).Encode(lineUp(who, contexts)); err != nil {
		os.Exit(1)
	}
}

// A footprint is the cost of waiters.
type footprint struct {
	Parked    float64 // bytes of resident memory each, once they wait
	Collected float64 // the same, after a garbage collection
	Join      float64 // ns for each to join
	CPU       float64 // percent of one CPU while all of them wait
	Cancel    float64 // ms until all have left
}

// BenchmarkWaiters puts 100,000 callers in line, each contender in a process of its own, and
// cancels them. They share one context, or one with a deadline, or each has its own deadline, as
// requests do, whose context and timer then count. goroutine is the least cost of a wait: a bare
// receive from ctx.Done(). timer also waits for a timer of its own.
func BenchmarkWaiters(b *testing.B) {
	for _, contexts := range []string{"shared", "deadline", "own-deadline"} {
		for _, who := range []string{"goroutine", "timer", "xtime", "failsafe", "weir"} {
			b.Run("ctx="+contexts+"/who="+who, func(b *testing.B) {
				for b.Loop() {
					f := inChild(b, who+" "+contexts)
					b.ReportMetric(f.Parked, "RSS-B/waiter")
					b.ReportMetric(f.Collected, "RSS-B/waiter-after-GC")
					b.ReportMetric(f.Join, "join-ns/waiter")
					b.ReportMetric(f.CPU, "%CPU-parked")
					b.ReportMetric(f.Cancel, "cancel-ms")
				}
			})
		}
	}
}

func inChild(b *testing.B, what string) footprint {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), spec+"="+what)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var f footprint
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(out)).Decode(&f)
	}
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
	return f
}

// far is further than 100,000 callers of a limit of one in an hour wait.
const far = 20 * 365 * 24 * time.Hour

// bare returns how a goroutine without a limiter waits, and nil for a contender.
func bare(who string) decision {
	switch who {
	case "goroutine":
		return func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	case "timer":
		return func(ctx context.Context) error {
			timer := time.NewTimer(far)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return ctx.Err()
		}
	}
	return nil
}

// lineUp is the main function of the child. The limit is too low for any departure, and the
// deadlines too late for any rejection.
func lineUp(who, contexts string) footprint {
	wait := bare(who)
	if wait == nil {
		wait = evenly(who, 1, time.Hour)
		if err := wait(context.Background()); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	if contexts == "deadline" {
		ctx, cancel = context.WithTimeout(ctx, far)
	}
	var all sync.WaitGroup
	var f footprint
	before, began := resident(), time.Now()
	for range waiters {
		all.Go(func() {
			ctx := ctx
			if contexts == "own-deadline" {
				own, cancel := context.WithTimeout(ctx, far)
				defer cancel()
				ctx = own
			}
			if wait(ctx) == nil {
				panic(who + " let somebody go")
			}
		})
	}
	settle()
	f.Join = float64(time.Since(began)) / waiters
	f.Parked = float64(resident()-before) / waiters
	runtime.GC()
	debug.FreeOSMemory()
	f.Collected = float64(resident()-before) / waiters
	f.CPU = busy(time.Second)
	began = time.Now()
	cancel()
	all.Wait()
	f.Cancel = float64(time.Since(began)) / float64(time.Millisecond)
	return f
}
