package learning_test

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A beside is a lane that takes a share of a quota, beside a console that sends freely.
type beside struct {
	name   string
	limit  testserver.Limit
	styles []testserver.Style
	rate   float64 // permits per second of the limit
	warmup time.Duration
	runs   time.Duration
	least  float64 // of its share that the lane takes, after the warm-up
}

func besides() []beside {
	hundreds, bucket := testserver.FixedWindow(1000, 10*time.Second), testserver.TokenBucket(100, time.Second, 40)
	noLimit := testserver.Fields{Remaining: "X-RateLimit-Remaining", Reset: "X-RateLimit-Reset", As: testserver.DeltaSeconds}.Write
	return []beside{
		{"a reported window", hundreds, []testserver.Style{testserver.XRateLimitDelta}, 100, 20 * time.Second, time.Minute, 0.8},
		{"a window without its limit", hundreds, []testserver.Style{noLimit}, 100, 20 * time.Second, time.Minute, 0.5},
		{"a reported bucket", bucket, []testserver.Style{testserver.RateLimit}, 100, 20 * time.Second, time.Minute, 0.6},
		{"a bucket with a rate as its limit", bucket, []testserver.Style{testserver.Seen(testserver.XRateLimitDelta, testserver.RateAsLimit)}, 100, 30 * time.Second, time.Minute, 0.6},
		{"bare refusals of a bucket", bucket, nil, 100, 90 * time.Second, 150 * time.Second, 0.5}, // most find it in 40 s, one of a hundred in 73 s
		{"bare refusals of a window", hundreds, nil, 100, 2 * time.Minute, 3 * time.Minute, 0.4},
	}
}

// run has 32 workers send through transports with half of the quota, beside a console that sends a
// fifth of the rate, at random. It returns the grants of both after the warm-up, and how often the
// console was refused then.
func (b *beside) run(replicas ...*harness.Rig) (lane, console, refused int) {
	r := replicas[0]
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for ctx.Err() == nil {
				replicas[i%len(replicas)].Get(ctx, "lane")
			}
		})
	}
	wg.Go(func() {
		base := r.Server.Transport()
		for ctx.Err() == nil {
			time.Sleep(time.Duration(rand.ExpFloat64() / (0.2 * b.rate) * 1e9))
			if resp, err := base.RoundTrip(r.Request(ctx, "console")); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
	})
	time.Sleep(b.runs)
	cancel()
	wg.Wait()
	for _, a := range r.Vendor.Arrivals() {
		switch {
		case a.At < b.warmup:
		case a.ID == "lane" && a.Granted:
			lane++
		case a.ID == "console" && a.Granted:
			console++
		case a.ID == "console":
			refused++
		}
	}
	return lane, console, refused
}

// leaves runs it once, and fails the test unless the rest was left.
func (b *beside) leaves(t *testing.T, seed int, replicas ...*harness.Rig) {
	t.Helper()
	lane, console, refused := b.run(replicas...)
	whole := b.rate * (b.runs - b.warmup).Seconds()
	took := float64(lane) / whole
	t.Logf("run %d: the lane took %.3f of the quota, the console %.3f, which was refused %d times", seed, took, float64(console)/whole, refused)
	if took > 0.5*1.02 || took < 0.5*b.least || refused > 0 {
		t.Errorf("run %d: the lane took %.3f of the quota, and the console was refused %d times; want %.2f to 0.5, and 0", seed, took, refused, 0.5*b.least)
	}
}

// besideRuns returns how often each case runs: once with -short, and 20 times if WEIR_LONG is set.
func besideRuns(usual int) int {
	switch {
	case testing.Short():
		return 1
	case os.Getenv("WEIR_LONG") != "":
		return 20
	}
	return usual
}

// By the vendor's record a lane takes at most its share, and leaves the rest to a console, whose
// calls are never refused.
func TestLaneLeavesTheRestToOthers(t *testing.T) {
	t.Parallel()
	for i, b := range besides() {
		if i != 2 && testing.Short() {
			continue // they run the same code
		}
		t.Run(b.name, func(t *testing.T) {
			for seed := range besideRuns(2) {
				synctest.Test(t, func(t *testing.T) {
					vendor := &testserver.Vendor{Limits: []testserver.Limit{b.limit}, Styles: b.styles, Service: 20 * time.Millisecond, Spread: 10 * time.Millisecond}
					r := harness.PipeRig(t, vendor, &weir.Transport{Share: 0.5})
					b.leaves(t, seed, r)
				})
			}
		})
	}
}

// The same over real sockets, in real time.
func TestLaneLeavesTheRestToOthersOverSockets(t *testing.T) {
	b := beside{limit: testserver.FixedWindow(200, 2*time.Second), rate: 100, warmup: 2 * time.Second, runs: 8 * time.Second}
	vendor := &testserver.Vendor{Limits: []testserver.Limit{b.limit}, Styles: []testserver.Style{testserver.XRateLimitDelta}, Service: 5 * time.Millisecond}
	lane, console, refused := b.run(harness.SocketRig(t, vendor, &weir.Transport{Share: 0.5}))
	t.Logf("the lane took %d calls of 600, the console %d", lane, console)
	if windows := 300 + 100; lane > windows || refused > 0 { // the record may begin in a window
		t.Errorf("the lane took %d calls of 600, and the console was refused %d times; want half, and 0", lane, refused)
	}
}

// A small bucket is full again between two calls, so it rises as fast as calls leave, and not as fast
// as it would. A lane that takes its share of what it sees would halve its rate again and again.
func TestShareOfASmallBucketDoesNotSink(t *testing.T) {
	t.Parallel()
	noReset := testserver.Fields{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining"}.Write
	for name, style := range map[string]testserver.Style{"reset": testserver.XRateLimitDelta, "no reset": noReset} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := beside{limit: testserver.TokenBucket(20, time.Second, 6), rate: 20, warmup: time.Minute, runs: 2 * time.Minute}
				vendor := &testserver.Vendor{Limits: []testserver.Limit{b.limit}, Styles: []testserver.Style{style}, Service: 20 * time.Millisecond, Spread: 5 * time.Millisecond}
				lane, console, _ := b.run(harness.PipeRig(t, vendor, &weir.Transport{Share: 0.5}))
				if lane < 300 {
					t.Errorf("the lane took %d of 600 calls beside a console that took %d, want half", lane, console)
				}
			})
		})
	}
}
