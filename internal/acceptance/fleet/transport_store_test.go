package fleet_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Several transports, as of several processes, share limits through a remote store.

func TestFleetSharesOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{}
		f := harness.NewFleet(t, 4, vendor, throttle.TokenBucket(50, time.Second, 2))
		f.WantAll(f.Callers(t.Context(), 25))
		arrivals := vendor.Arrivals()
		if got := arrivals.BurstAt(50, time.Second); got > 2+2+1 { // tolerance, and spread of the trip
			t.Errorf("burst of four replicas = %d, want 5 at most", got)
		}
		if span := arrivals.Span(); len(arrivals) != 100 || span > 2200*time.Millisecond {
			t.Errorf("%d arrivals in %v, want 100 in little more than 1.96s", len(arrivals), span)
		}
	})
}

// Permits that are further apart than replies are trusted go to all replicas in turn.
func TestFleetSharesASlowLimitEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.NewFleet(t, 3, &testserver.Vendor{}, harness.Every(10*time.Second)...)
		began := f.Replicas[0].Now()
		all := f.Callers(t.Context(), 8)
		f.WantAll(all)
		if span := f.Replicas[0].Now() - began; span > 235*time.Second {
			t.Errorf("24 calls took %v, want little more than 230s", span)
		}
		for i, c := range all {
			half := 0
			for _, got := range c.Answers {
				if got.At-began < 115*time.Second {
					half++
				}
			}
			if half < 3 || half > 5 {
				t.Errorf("replica %d had %d of the first 12 calls, want a third", i, half)
			}
		}
	})
}

// A refusal seen by one replica pauses all within two round trips, also by a vendor that counts by
// credential, if there is one.
func TestRefusalPausesFleet(t *testing.T) {
	t.Run("of the lane", func(t *testing.T) { refusalPausesFleet(t, headers.ScopeUnknown) })
	t.Run("of a credential", func(t *testing.T) { refusalPausesFleet(t, headers.ScopeCredential) })
}

func refusalPausesFleet(t *testing.T, scope headers.Scope) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Answered(10, testserver.Fault{Header: harness.Hints("2")})}}
		f := harness.NewFleet(t, 3, vendor, throttle.TokenBucket(50, time.Second, 1))
		for _, r := range f.Replicas {
			r.Transport.Dialect = harness.ScopedBy(scope)
		}
		f.WantAll(f.Callers(t.Context(), 10))
		arrivals := vendor.Arrivals()
		refused := arrivals.Filter(func(a testserver.Arrival) bool { return a.Status == 429 })
		if len(refused) != 1 || len(arrivals) != 31 {
			t.Fatalf("refusals, arrivals = %d, %d, want 1, 31", len(refused), len(arrivals))
		}
		at := refused[0].At
		late := arrivals.Filter(func(a testserver.Arrival) bool { return a.At > at+2*harness.RoundTrip && a.At < at+2*time.Second })
		if len(late) > 0 {
			t.Errorf("arrivals in the pause = %v, want none between %v and %v", harness.Instants(late), at+2*harness.RoundTrip, at+2*time.Second)
		}
		after := arrivals.Filter(func(a testserver.Arrival) bool { return a.At >= at+2*time.Second })
		if got := after.BurstAt(50, time.Second); got > 1+2+1 {
			t.Errorf("burst after the pause = %d, want 4 at most", got)
		}
	})
}

// If a replica has seen several credentials, the refusal of one holds no other.
func TestRefusalOfOneOfManyCredentialsHoldsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Answered(3, testserver.Fault{Header: harness.Hints("5")})}}
		r := harness.NewFleet(t, 1, vendor).Replicas[0]
		r.Transport.Dialect = harness.ScopedBy(headers.ScopeCredential)
		for _, credential := range []string{"a", "b"} {
			r.Want("the first call of "+credential, r.Do(r.As(credential)), 200)
		}
		got := r.Ask(r.As("a"), r.As("b"), r.As("a"))
		if got[0] < 5*time.Second || got[1] > time.Second || got[2] < 5*time.Second {
			t.Errorf("answers at %v, want those of a after 5s, and that of b at once", got)
		}
	})
}

// A store of this process alone changes nothing: a credential waits for no other, and learns.
func TestRefusalOfCredentialWithoutAFleetHoldsNoOther(t *testing.T) {
	for name, store := range map[string]throttle.Store{
		"local": throttle.Local{},
		"own":   harness.StoreFunc(throttle.Local{}.Limiter),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Answered(1, testserver.Fault{Header: harness.Hints("5")})}}
				r := harness.PipeRig(t, vendor, &weir.Transport{Store: store, Dialect: harness.ScopedBy(headers.ScopeCredential)})
				if got := r.Ask(r.As("a"), r.As("b")); got[0] < 5*time.Second || got[1] > time.Second {
					t.Errorf("answers at %v, want that of a after 5s, and that of b at once", got)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(10, time.Second, 1)}, Service: 20 * time.Millisecond}
				r := harness.PipeRig(t, vendor, &weir.Transport{Store: store, Limits: harness.Every(10 * time.Millisecond), Dialect: harness.ScopedBy(headers.ScopeCredential)})
				if d := harness.DrainBy(r, 300); d.Failed > 0 || d.Refused > 100 {
					t.Errorf("of 300 calls, %d failed and %d were refused, want 0 and 100 at most", d.Failed, d.Refused)
				}
			})
		})
	}
}

// A new replica whose first call is refused for an hour has seen one credential of many.
func TestRefusalOfANewReplicaForLongClosesNoFleet(t *testing.T) {
	for calls, want := range map[int]int{0: 200, 9: 0} { // after so many others of the credential
		synctest.Test(t, func(t *testing.T) {
			vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Answered(calls+1, testserver.Fault{Header: harness.Hints("3600")})}}
			f := harness.NewFleet(t, 2, vendor)
			for _, r := range f.Replicas {
				r.Transport.Dialect = harness.ScopedBy(headers.ScopeCredential)
			}
			for range calls {
				f.Replicas[0].Want("a call before", f.Replicas[0].Do(f.Replicas[0].As("a")), 200)
			}
			f.Replicas[0].Want("the refused call", f.Replicas[0].Do(f.Replicas[0].As("a")), 429)
			time.Sleep(time.Second)
			if got := f.Replicas[1].Do(f.Replicas[1].As("b")); got.Status != want {
				t.Errorf("after %d calls and a refusal for an hour, the other replica's call = %d, %v, want %d", calls, got.Status, got.Err, want)
			}
		})
	}
}

// A third refusal holds its credential also if others are served, once the lane was refused as a
// whole: while there was one credential.
func TestThirdRefusalOfOneOfManyCredentialsHoldsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var faults []testserver.Fault
		for _, n := range []int{1, 4, 6, 8} { // 2 repeats the first; 3, 5 and 7 are of the other
			faults = append(faults, harness.Answered(n, testserver.Fault{Header: harness.Hints("5")}))
		}
		r := harness.NewFleet(t, 1, &testserver.Vendor{Faults: faults}).Replicas[0]
		r.Transport.Dialect = harness.ScopedBy(headers.ScopeCredential)
		r.Want("the first call", r.Do(r.As("spent")), 200)
		r.Want("the first call of the other", r.Do(r.As("other")), 200)
		go r.Do(r.As("spent"))
		for range 2 {
			time.Sleep(time.Second)
			r.Want("a call of the other", r.Do(r.As("other")), 200)
			time.Sleep(4200 * time.Millisecond)
		}
		time.Sleep(time.Second)
		began := r.Now()
		if got := r.Do(r.As("spent")); got.Status != 200 || got.At-began < 3*time.Second {
			t.Errorf("a call after the third refusal = %d, %v in %v, want 200 after 5s since then", got.Status, got.Err, got.At-began)
		}
	})
}

// A credential that is renewed is one, some minutes later.
func TestRefusalOfARenewedCredentialPausesFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Answered(5, testserver.Fault{Header: harness.Hints("5")})}}
		f := harness.NewFleet(t, 2, vendor, throttle.TokenBucket(50, time.Second, 1))
		for _, r := range f.Replicas {
			r.Transport.Dialect = harness.ScopedBy(headers.ScopeCredential)
		}
		for _, credential := range []string{"old", "new"} {
			for _, r := range f.Replicas {
				r.Want("a call with the "+credential, r.Do(r.As(credential)), 200)
			}
		}
		time.Sleep(11 * time.Minute)
		began := f.Replicas[0].Now()
		go f.Replicas[0].Do(f.Replicas[0].As("new")) // is refused
		time.Sleep(100 * time.Millisecond)
		if got := f.Replicas[1].Do(f.Replicas[1].As("new")); got.At-began < 5*time.Second {
			t.Errorf("after a refusal by the other replica a call is answered in %v, want 5s or later", got.At-began)
		}
	})
}

func TestSilentStoreHoldsNobodyBeyondContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.NewFleet(t, 1, &testserver.Vendor{}, harness.Every(time.Second)...)
		f.Redis.Break(redispipe.Silent)
		r := f.Replicas[0]
		// Once Redis has not answered in time, one of a hundred replicas sends its first call at
		// its share, and the next 200 s later.
		if got := r.Get(t.Context(), "first"); got.Status != 200 || got.At != distributed.DefaultDeadline {
			t.Errorf("GET = %d, %v at %v, want 200 at 50ms", got.Status, got.Err, got.At)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if got := r.Get(ctx, "cancelled"); !errors.Is(got.Err, context.Canceled) || got.At != 1050*time.Millisecond {
			t.Errorf("GET = %d, %v at %v, want canceled at 1.05s", got.Status, got.Err, got.At)
		}
		if got := r.Get(weir.WithMaxWait(t.Context(), time.Second), "patient"); !errors.Is(got.Err, shaping.ErrDeadline) || got.At != 2050*time.Millisecond {
			t.Errorf("GET = %d, %v at %v, want ErrDeadline at 2.05s", got.Status, got.Err, got.At)
		}
	})
}

func TestFleetGoesOnWhenStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{}
		f := harness.NewFleet(t, 2, vendor, throttle.TokenBucket(50, time.Second, 1))
		f.Redis.Break(redispipe.Loading)
		all := f.Callers(t.Context(), 20)
		time.Sleep(time.Second)
		if got := len(vendor.Arrivals()); got != 2 {
			t.Errorf("arrivals without a store = %d, want the first of each replica's share", got)
		}
		f.Redis.Break(redispipe.Healthy)
		f.WantAll(all)
		if got := vendor.Arrivals().BurstAt(50, time.Second); got > 1+2+1 {
			t.Errorf("burst when the store is back = %d, want 4 at most", got)
		}
	})
}

func TestFleetRefusesOversizedCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.NewFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 5))
		got := f.Replicas[0].Get(weir.WithCost(t.Context(), 6), "a")
		if !errors.Is(got.Err, throttle.ErrExceedsBurst) || got.At != 0 {
			t.Errorf("GET = %d, %v at %v, want ErrExceedsBurst at once", got.Status, got.Err, got.At)
		}
		f.Replicas[0].Want("GET", f.Replicas[0].Get(weir.WithCost(t.Context(), 5), "b"), 200)
	})
}

func TestCloseWithStoreCallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.NewFleet(t, 2, &testserver.Vendor{}, harness.Every(time.Second)...)
		f.Redis.Break(redispipe.Silent)
		all := f.Callers(t.Context(), 3)
		for _, r := range f.Replicas {
			r.Transport.Close()
		}
		for _, c := range all {
			for _, got := range c.Wait() {
				harness.WantClosed(t, "GET", got, 0)
			}
		}
	})
}

// Changed limits of one replica apply to all.
func TestSetLimitsReachesFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{}
		f := harness.NewFleet(t, 2, vendor, harness.Every(time.Hour)...)
		all := f.Callers(t.Context(), 5)
		time.Sleep(time.Second)
		for _, r := range f.Replicas {
			if err := r.Transport.SetLimits(throttle.TokenBucket(10, time.Second, 1)); err != nil {
				t.Fatal(err)
			}
		}
		f.WantAll(all)
		// The claim of one call an hour expires after 5.5 s, the replicas ask each second, and ten
		// calls at 10/s take 0.9 s.
		if span, most := vendor.Arrivals().Span(), time.Second+5500*time.Millisecond+time.Second+900*time.Millisecond; span > most {
			t.Errorf("ten calls, whose limit was published after a second, took %v, want at most %v", span, most)
		}
	})
}

// A closed store rejects the callers in line, whatever they wait for.
func TestAClosedStoreRejectsCallersInLine(t *testing.T) {
	for name, shared := range map[string]int{"a permit": 0, "the end of a call": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := harness.NewFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(1, time.Hour, 1+shared))
				r := f.Replicas[0]
				r.Transport.InFlight.Shared = shared
				defer r.Open(t.Context(), "first").Body.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				all := r.Callers(ctx, 1)
				time.Sleep(2 * time.Second)
				closed := time.Now()
				_ = f.Stores[0].Close()
				if got := all.Wait()[0]; !errors.Is(got.Err, distributed.ErrClosed) || time.Since(closed) > time.Second {
					t.Errorf("GET in line = %d, %v after %v, want ErrClosed at once", got.Status, got.Err, time.Since(closed))
				}
			})
		})
	}
}

// So does a closed store of files, also callers of several lanes.
func TestAClosedStoreOfFilesRejectsCallersInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hostlocal.Store{Dir: t.TempDir() + "/weir"}
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Store: store, Limits: harness.Every(time.Hour), Keys: func(*http.Request) []string { return []string{"customer", "account"} },
		})
		r.Spend()
		all := r.Callers(t.Context(), 1)
		time.Sleep(2 * time.Second)
		closed := time.Now()
		_ = store.Close()
		if got := all.Wait()[0]; !errors.Is(got.Err, hostlocal.ErrClosed) || time.Since(closed) > time.Second {
			t.Errorf("GET in line = %d, %v after %v, want ErrClosed at once", got.Status, got.Err, time.Since(closed))
		}
	})
}

// Processes of a host spend a reported window as calls come. If the number of calls that readings
// allow did not bound them, the vendor would refuse 3 to 26 of these calls.
func TestProcessesOfAHostSpendWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.FixedWindow(100, 10*time.Second)}, Styles: []testserver.Style{testserver.XRateLimitEpoch},
			Service: 5 * time.Millisecond, Spread: 2 * time.Millisecond,
		}
		dir := t.TempDir() + "/weir"
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		var made atomic.Int64
		var all sync.WaitGroup
		for range 2 {
			store := &hostlocal.Store{Dir: dir}
			r := harness.PipeRig(t, vendor, &weir.Transport{Store: store})
			defer store.Close()
			for range 32 {
				all.Go(func() {
					for made.Add(1) <= 350 {
						r.Want("GET", r.Get(ctx, "a"), 200)
					}
				})
			}
		}
		all.Wait()
		refused, took := vendor.Arrivals().Count(http.StatusTooManyRequests), time.Since(began)
		if refused > 2 || took > 32*time.Second {
			t.Errorf("350 calls took %v, of which %d were refused, want 30 s and 2 at most", took, refused)
		}
	})
}

// A vendor that ceases to report what is left does not hold the processes of a host: a call
// without a reading counts as one that the vendor has not charged. One call in eight would tell
// them too little.
func TestAVendorThatCeasesToReportHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Int64
		vendor := &testserver.Vendor{Service: 100 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n := answers.Add(1); n <= 2 { // 0 and 1 of 100 left, for most of an hour
				h := w.Header()
				h.Set("X-RateLimit-Limit", "100")
				h.Set("X-RateLimit-Remaining", strconv.FormatInt(n-1, 10))
				h.Set("X-RateLimit-Reset", "3000")
			}
		})}
		r := harness.PipeRig(t, vendor, &weir.Transport{Store: &hostlocal.Store{Dir: t.TempDir()}})
		for range 40 {
			began := time.Now()
			r.Want("GET", r.Get(t.Context(), "a"), 200)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("call %d took %v, want 10 s at most", answers.Load(), took)
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
}
