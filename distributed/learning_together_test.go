package distributed_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A company is processes that share a vendor without a configured limit.
type company struct {
	t      *testing.T
	redis  *redispipe.Server
	vendor *testserver.Vendor
	server *testserver.Server
	limits []throttle.Limit
	all    []*weir.Transport
	stores []*distributed.Store
	served atomic.Int64
}

func newCompany(t *testing.T, styles ...testserver.Style) *company {
	t.Helper()
	vendor := &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)},
		Styles:  styles,
		Service: 5 * time.Millisecond,
	}
	server, err := testserver.Pipe(vendor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &company{t: t, redis: redispipe.Start(t, time.Millisecond), vendor: vendor, server: server}
}

// join adds a process.
func (c *company) join() *weir.Transport {
	store := distributed.New(c.redis.Client(c.t), "company")
	store.Logger = slog.New(slog.DiscardHandler)
	limits := c.limits
	p := &weir.Transport{Base: c.server.Transport(), Store: store, Limits: limits, Logger: slog.New(slog.DiscardHandler)}
	c.all, c.stores = append(c.all, p), append(c.stores, store)
	c.t.Cleanup(func() {
		_ = p.Close()
		_ = store.Close()
	})
	return p
}

// drain makes each process send its number of calls with several workers, and returns how long that
// took.
func (c *company) drain(workers int, calls ...int) time.Duration {
	c.t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i, n := range calls {
		var made atomic.Int64
		client := &http.Client{Transport: c.all[i]}
		for range workers {
			all.Go(func() {
				for made.Add(1) <= int64(n) {
					resp, err := client.Get(c.server.URL)
					if err != nil || resp.StatusCode != http.StatusOK {
						c.t.Errorf("call: %v, %v", resp, err)
						return
					}
					_ = resp.Body.Close()
					c.served.Add(1)
				}
			})
		}
	}
	all.Wait()
	return time.Since(began)
}

func (c *company) refused() int { return c.vendor.Arrivals().Count(http.StatusTooManyRequests) }

func even(n, processes int) []int {
	all := make([]int, processes)
	for i := range all {
		all[i] = n / processes
	}
	return all
}

// 2,000 calls are sent at an unconfigured 200/s with a burst of 20, by one process and by eight
// that share a store.
func TestProcessesLearnTogether(t *testing.T) {
	for _, c := range []struct {
		name    string
		styles  []testserver.Style
		wall    float64 // at most this multiple of the ideal
		refused int     // at most
	}{
		{"bare", nil, 1.3, 60},
		{"ms", []testserver.Style{testserver.RetryAfterMillis}, 1.2, 30},
		{"x-ratelimit", []testserver.Style{testserver.XRateLimitEpoch, testserver.RetryAfterSeconds}, 1.05, 4},
		{"coarse", []testserver.Style{testserver.Coarse}, 1.05, 4},
		{"seconds", []testserver.Style{testserver.RetryAfterSeconds}, 1.7, 15}, // two or three reported pauses, each followed by a search
		{"ietf", []testserver.Style{testserver.RateLimit, testserver.RetryAfterSeconds}, 1.05, 2},
	} {
		for _, work := range []struct {
			name  string
			calls []int
		}{
			{"alone", []int{2000}},
			{"even", even(2000, 8)},
			{"skewed", append([]int{1600}, even(400, 7)...)},
		} {
			// The detector makes the script's interpreter ten times slower: it runs one case.
			if raced && c.name+work.name != "bareskewed" {
				continue
			}
			if raced {
				work.calls = []int{500, 60, 60, 60}
			}
			t.Run(c.name+", "+work.name, func(t *testing.T) {
				t.Parallel() // they only compute, each in its own bubble
				// The order of first calls is random, so one repetition may meet a rare bad run.
				for again := 1; again >= 0; again-- {
					wall, refused, scripts := learnTogether(t, c.styles, work.calls)
					text := fmt.Sprintf("%.3f of the ideal, %d refused, %.2f scripts a success", wall, refused, scripts)
					t.Log(text)
					if refused <= c.refused && wall <= c.wall && scripts <= 0.8 {
						break
					}
					if again == 0 {
						t.Errorf("twice, lately %s; want %.2f, %d and 0.8 at most", text, c.wall, c.refused)
					}
				}
			})
		}
	}
}

// learnTogether sends the calls of each process, or of one that shares nothing, to a vendor of
// 200/s. It returns the time as a multiple of the ideal, the refusals, and the scripts per success.
func learnTogether(t *testing.T, styles []testserver.Style, calls []int) (wall float64, refused int, scripts float64) {
	t.Helper()
	ideal := -20 * 5 * time.Millisecond // the burst is there at once
	for _, n := range calls {
		ideal += time.Duration(n) * 5 * time.Millisecond
	}
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t, styles...)
		if len(calls) == 1 {
			p := &weir.Transport{Base: f.server.Transport(), Logger: slog.New(slog.DiscardHandler)}
			t.Cleanup(func() { _ = p.Close() })
			f.all = append(f.all, p)
		} else {
			for range calls {
				f.join()
			}
		}
		took := f.drain(128/len(calls), calls...)
		wall, refused, scripts = took.Seconds()/ideal.Seconds(), f.refused(), float64(f.redis.Calls())/float64(f.served.Load())
	})
	return wall, refused, scripts
}

// tooSlowHere reports whether the race detector is on: the script's interpreter is then ten times
// slower, so only one learning test runs.
func tooSlowHere(t *testing.T) bool {
	if raced {
		t.Log("the detector makes the script's interpreter ten times slower")
	}
	return raced
}

// Four of eight processes die, Redis loses everything, and four others start: all use what was
// learned.
func TestWhatWasLearnedOutlivesProcessesAndRedis(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t)
		for range 8 {
			f.join()
		}
		f.drain(16, even(2000, 8)...)
		f.agree(160, 240)
		for _, p := range f.all[:4] {
			_ = p.Close()
		}
		f.all = f.all[4:]
		f.redis.Forget()
		for range 4 {
			f.join()
		}
		before := f.refused()
		took := f.drain(16, even(1000, 8)...)
		if wall, refused := took.Seconds()/5, f.refused()-before; wall > 1.25 || refused > 10 {
			t.Errorf("after it, 1,000 calls took %.2f of the ideal, with %d refused", wall, refused)
		}
		f.agree(160, 240)
	})
}

// agree runs the processes for a few seconds at most, until all know the same rate, to a twentieth,
// within the bounds. An unexpected refusal makes them unsure for a while, so at one look no process
// may know a rate.
func (c *company) agree(least, most float64) {
	c.t.Helper()
	for range 20 {
		if from, to := c.known(); from >= least && to <= most && to <= 1.05*from {
			return
		}
		c.drain(16, even(400, len(c.all))...) // two seconds: a shorter drain is served from the burst
	}
	from, to := c.known()
	c.t.Errorf("the processes have learned %.1f/s to %.1f/s of 200/s, want %.0f/s to %.0f/s", from, to, least, most)
}

// known returns the lowest and the highest rate that a process has learned.
func (c *company) known() (least, most float64) {
	least = learnedRate(c.all[0])
	for _, p := range c.all {
		rate := learnedRate(p)
		least, most = min(least, rate), max(most, rate)
	}
	return least, most
}

// Two seconds after the first of eight processes knows a rate, all know it.
func TestAllKnowWithinTwoSeconds(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t)
		for range 8 {
			f.join()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.drain(16, even(1200, 8)...)
		}()
		sure := func() bool {
			return slices.ContainsFunc(f.all, func(p *weir.Transport) bool { return learnedRate(p) > 0 })
		}
		for i := 0; i < 100 && !sure(); i++ {
			time.Sleep(50 * time.Millisecond)
		}
		// A second refusal may leave all of them less sure than the first, and one look may come
		// before all have applied it.
		all := false
		for until := time.Now().Add(2 * time.Second); !all && time.Now().Before(until); {
			time.Sleep(50 * time.Millisecond)
			least, most := f.known() // it may still be a quarter too high
			all = least > 0 && most <= 1.05*least
		}
		if !all {
			least, most := f.known()
			t.Errorf("in two seconds not all have learned the same: %.1f/s to %.1f/s", least, most)
		}
		<-done
	})
}

// learnedRate returns the rate that a process has learned; zero: none.
func learnedRate(p *weir.Transport) float64 {
	for _, lane := range p.Snapshot() {
		return lane.Learned.Rate
	}
	return 0
}

// Processes without learning send what the vendor answered, and obey its pauses. Among themselves
// they learn nothing.
func TestProcessesWithoutLearningObey(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	for _, learning := range []int{4, 0} {
		synctest.Test(t, func(t *testing.T) {
			f := newCompany(t)
			for i := range 8 {
				if p := f.join(); i >= learning {
					p.Learn = weir.LearnOff
				}
			}
			if learning == 0 {
				f.drain(1, even(80, 8)...)
			} else {
				f.drain(16, even(2000, 8)...) // processes without learning begin with all calls at once
				before := f.refused()
				f.drain(16, even(1000, 8)...)
				if refused := f.refused() - before; refused > 20 {
					t.Errorf("of 1,000 calls %d were refused once the limit was known", refused)
				}
			}
			if learning > 0 {
				f.agree(140, 260)
			} else if _, most := f.known(); most > 0 {
				t.Errorf("without learning, a process knows %.0f/s", most)
			}
		})
	}
}

// Forgetting a lane in one process makes all processes forget it.
func TestAllForgetTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t)
		for range 4 {
			f.join()
		}
		f.drain(16, even(1200, 4)...)
		f.agree(140, 260)
		for _, lane := range f.all[0].Snapshot() {
			if err := f.all[0].Forget(lane.Key); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second) // otherwise a refusal would teach them again
		f.drain(1, even(8, 4)...)
		time.Sleep(time.Second)
		for i, p := range f.all {
			if rate := learnedRate(p); rate != 0 {
				t.Errorf("process %d still knows %.0f/s", i, rate)
			}
		}
	})
}
