package weir_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestWithCostIsChargedToEveryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{
			throttle.TokenBucket(10, time.Second, 5),
			throttle.TokenBucket(1, time.Second, 5),
		}})
		ctx := weir.WithCost(t.Context(), 3)
		for range 3 {
			r.Want("GET", r.Get(ctx, "a"), 200)
		}
		// Five at hand: three now, three when the slower has earned one, and
		// then three more.
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, time.Second, 4 * time.Second})
	})
}

func TestWithCostBeyondBurstIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}})
		got := r.Get(weir.WithCost(t.Context(), 6), "a")
		var ours *weir.Error
		if !errors.Is(got.Err, throttle.ErrExceedsBurst) || !errors.As(got.Err, &ours) || ours.Timeout() || got.At != 0 {
			t.Errorf("GET = %d, %v at %v, want ErrExceedsBurst at once", got.Status, got.Err, got.At)
		}
		r.Want("GET after it", r.Get(weir.WithCost(t.Context(), 5), "b"), 200)
	})
}

func TestCostIsAskedForEachLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := throttle.TokenBucket(100, time.Second, 100).Of("tokens")
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.TokenBucket(1000, time.Second, 1000), tokens},
			Cost: func(req *http.Request, l throttle.Limit) int {
				if l.Unit != "tokens" {
					return 1
				}
				n, _ := strconv.Atoi(req.Header.Get("X-Tokens"))
				return n
			},
		})
		for _, n := range []string{"60", "60", "0", "100"} {
			req := r.Request(t.Context(), n)
			req.Header.Set("X-Tokens", n)
			r.Want("GET", r.Do(req), 200)
		}
		// 60 leave 40; 20 more come in 0.2 s; 0 cost nothing; 100 take a second.
		want := []time.Duration{0, 200 * time.Millisecond, 200 * time.Millisecond, 1200 * time.Millisecond}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestWithCostGoesBeforeCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.TokenBucket(1, time.Second, 5)},
			Cost:   func(*http.Request, throttle.Limit) int { return 5 },
		})
		for range 3 {
			r.Want("GET", r.Get(weir.WithCost(t.Context(), 2), "a"), 200)
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, time.Second})
	})
}

func TestWithMaxWaitRefusesLongerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(10 * time.Second)})
		r.Spend()
		got := r.Get(weir.WithMaxWait(t.Context(), 10*time.Second-1), "a")
		var ours *weir.Error
		if !errors.Is(got.Err, shaping.ErrDeadline) || !errors.As(got.Err, &ours) || ours.Wait != 10*time.Second || got.At != 0 {
			t.Errorf("GET = %d, %v at %v, want ErrDeadline of 10s at once", got.Status, got.Err, got.At)
		}
		r.Want("GET that waits as long", r.Get(weir.WithMaxWait(t.Context(), 10*time.Second), "b"), 200)
	})
}

func TestWithMaxWaitReplacesTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(10 * time.Second), Line: weir.Line{MaxWait: time.Second}})
		r.Spend()
		if got := r.Get(t.Context(), "a"); !errors.Is(got.Err, shaping.ErrDeadline) {
			t.Errorf("GET = %d, %v, want ErrDeadline by Transport.Line.MaxWait", got.Status, got.Err)
		}
		r.Want("GET", r.Get(weir.WithMaxWait(t.Context(), time.Minute), "b"), 200)
	})
}

func TestOptionsOfContextCombine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Second, 5)}})
		ctx := weir.WithMaxWait(weir.WithCost(t.Context(), 5), time.Second)
		r.Want("GET", r.Get(ctx, "a"), 200)
		if got := r.Get(ctx, "b"); !errors.Is(got.Err, shaping.ErrDeadline) {
			t.Errorf("second GET = %d, %v, want ErrDeadline", got.Status, got.Err)
		}
	})
}

func TestOptionsPanicOnNonsense(t *testing.T) {
	for name, f := range map[string]func(context.Context) context.Context{
		"WithCost(0)":     func(ctx context.Context) context.Context { return weir.WithCost(ctx, 0) },
		"WithCost(-1)":    func(ctx context.Context) context.Context { return weir.WithCost(ctx, -1) },
		"WithMaxWait(0)":  func(ctx context.Context) context.Context { return weir.WithMaxWait(ctx, 0) },
		"WithMaxWait(-1)": func(ctx context.Context) context.Context { return weir.WithMaxWait(ctx, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			f(t.Context())
		})
	}
}

func TestMaxWaitingRefusesNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second), Line: weir.Line{MaxWaiting: 2}})
		answers := r.Callers(t.Context(), 5).Wait()
		for _, got := range answers[:3] {
			r.Want("GET", got, 200)
		}
		for _, got := range answers[3:] {
			var ours *weir.Error
			if !errors.Is(got.Err, shaping.ErrQueueFull) || !errors.As(got.Err, &ours) || ours.Timeout() || got.At != 0 {
				t.Errorf("GET = %d, %v at %v, want ErrQueueFull at once", got.Status, got.Err, got.At)
			}
		}
	})
}

// A full line does not reject a request that comes back to it.
func TestMaxWaitingAdmitsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: harness.Every(time.Second), Line: weir.Line{MaxWaiting: 2}, Retry: harness.After(time.Millisecond)})
		for _, got := range r.Callers(t.Context(), 3).Wait() {
			r.Want("GET", got, 200)
		}
	})
}

// orderOf sends requests of the contexts in this order while all of them must wait. It returns
// their ids in the order of their arrival at the vendor.
func orderOf(t *testing.T, transport *weir.Transport, come func(ctx context.Context, send func(context.Context, string))) (order []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		transport.Limits = []throttle.Limit{throttle.LeakyBucket(1, time.Second)}
		r := harness.PipeRig(t, &testserver.Vendor{}, transport)
		r.Want("GET", r.Get(t.Context(), "at once"), 200)
		var line sync.WaitGroup
		come(t.Context(), func(ctx context.Context, id string) {
			line.Go(func() { r.Want("GET "+id, r.Get(ctx, id), 200) })
			synctest.Wait()
		})
		line.Wait()
		order = harness.IDs(r.Vendor.Arrivals())[1:]
	})
	return order
}

func TestUrgentRequestGoesNext(t *testing.T) {
	order := orderOf(t, new(weir.Transport), func(ctx context.Context, send func(context.Context, string)) {
		for range 30 {
			send(weir.WithPriority(ctx, weir.PriorityLow), "bulk")
		}
		send(ctx, "receipt")
		send(weir.WithPriority(ctx, weir.PriorityHigh), "password")
	})
	if want := []string{"password", "receipt", "bulk"}; !slices.Equal(order[:3], want) {
		t.Errorf("the vendor saw first %v, want %v", order[:3], want)
	}
}

func TestLowPriorityShareIsGuaranteed(t *testing.T) {
	order := orderOf(t, &weir.Transport{Line: weir.Line{LowPriorityShare: 0.25}}, func(ctx context.Context, send func(context.Context, string)) {
		for range 3 {
			send(weir.WithPriority(ctx, weir.PriorityLow), "low")
		}
		for range 9 {
			send(ctx, "normal")
		}
	})
	if want := strings.Fields(strings.Repeat("normal normal normal low ", 3)); !slices.Equal(order, want) {
		t.Errorf("the vendor saw %v, want %v", order, want)
	}
}

func TestTenantsShareALane(t *testing.T) {
	want := strings.Fields("a b b a b b a a")
	flood := func(ctx context.Context, send func(context.Context, string), of func(context.Context, string, int) context.Context) {
		for range 4 {
			send(of(ctx, "a", 1), "a")
		}
		for range 4 {
			send(of(ctx, "b", 2), "b")
		}
	}
	order := orderOf(t, new(weir.Transport), func(ctx context.Context, send func(context.Context, string)) { flood(ctx, send, weir.WithTenant) })
	if !slices.Equal(order, want) {
		t.Errorf("tenants of contexts: the vendor saw %v, want %v", order, want)
	}
	byID := &weir.Transport{Tenant: func(r *http.Request) (string, int) {
		id := r.Header.Get(testserver.DefaultIDHeader)
		return id, map[string]int{"a": 1, "b": 2}[id]
	}}
	order = orderOf(t, byID, func(ctx context.Context, send func(context.Context, string)) {
		flood(ctx, send, func(ctx context.Context, _ string, _ int) context.Context { return ctx })
	})
	if !slices.Equal(order, want) {
		t.Errorf("tenants of Transport.Tenant: the vendor saw %v, want %v", order, want)
	}
}

func TestOverflowShedsTheLeastUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second)},
			Line:   weir.Line{MaxWaiting: 2, Overflow: shaping.OverflowShedLeastUrgent},
		})
		r.Want("GET", r.Get(t.Context(), "at once"), 200)
		var line sync.WaitGroup
		shed := make(chan error, 1)
		for i := range 2 {
			line.Go(func() {
				if got := r.Get(weir.WithPriority(t.Context(), weir.PriorityLow), strconv.Itoa(i)); got.Err != nil {
					shed <- got.Err
				}
			})
			synctest.Wait()
		}
		r.Want("the urgent GET", r.Get(t.Context(), "urgent"), 200)
		line.Wait()
		const text = `weir: lane "vendor.test": held back by this client's own limiter, not by the server: wait of 1s or more for rate: limit "leaky 1/s": 2 before it in line, about 3s: queue is full`
		if err := <-shed; err.Error() != text {
			t.Errorf("the error is\n%v, want\n%v", err, text)
		}
		harness.WantEqual(t, "ids", harness.IDs(r.Vendor.Arrivals()), []string{"at once", "urgent", "0"})
	})
}

func TestWaitingBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second)},
			Line:   weir.Line{MaxWaitingBytes: 100},
		})
		post := func(bytes int) harness.Answer {
			req := r.Request(t.Context(), strconv.Itoa(bytes))
			req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(strings.Repeat("x", bytes))), int64(bytes)
			return r.Do(req)
		}
		r.Want("POST", post(500), 200)
		var line sync.WaitGroup
		line.Go(func() { r.Want("POST in line", post(60), 200) })
		synctest.Wait()
		if got := post(41); !errors.Is(got.Err, shaping.ErrQueueFull) {
			t.Errorf("POST of 41 bytes behind 60 = %d, %v, want ErrQueueFull", got.Status, got.Err)
		}
		r.Want("POST of 40 bytes behind 60", post(40), 200)
		line.Wait()
	})
}
