package shaping_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A departed is the departures of a queue, in order.
type departed struct {
	mu    sync.Mutex
	names []string
}

func (d *departed) note(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = append(d.names, name)
}

// list returns a copy of the departures.
func (d *departed) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.names)
}

// wait starts callers that wait in the queue under a name, once all have arrived.
func (d *departed) wait(ctx context.Context, q *shaping.Queue, name string, n int) {
	for range n {
		go func() {
			if q.Wait(ctx) == nil {
				d.note(name)
			}
		}()
	}
	synctest.Wait()
}

func TestUrgentCallerGoesNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		var d departed
		low := shaping.WithPriority(t.Context(), shaping.PriorityLow)
		d.wait(low, q, "bulk", 10_000)
		time.Sleep(100*time.Second + 500*time.Millisecond)
		began := time.Now()
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 500*time.Millisecond {
			t.Errorf("an urgent caller waited %v behind 9,899 of bulk, want 500ms", waited)
		}
		q.Close()
	})
}

// One urgent worker, which comes back at once or in the middle of the interval, leaves the urgent
// class empty whenever it departs. It has 19 of 20 departures.
func TestLessUrgentKeepTheirShareBesideOneUrgentWorker(t *testing.T) {
	for _, work := range []time.Duration{0, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, throttle.LeakyBucket(10, time.Second))
			var d departed
			d.wait(shaping.WithPriority(t.Context(), shaping.PriorityLow), q, "bulk", 1000)
			go func() {
				urgent := shaping.WithPriority(t.Context(), shaping.PriorityHigh)
				for q.Wait(urgent) == nil {
					d.note("urgent")
					time.Sleep(work)
				}
			}()
			time.Sleep(40*time.Second + 10*time.Millisecond)
			synctest.Wait()
			bulk := 0
			for _, name := range d.list()[1:] { // the first departed before the urgent came
				if name == "bulk" {
					bulk++
				}
			}
			if bulk < 19 || bulk > 20 {
				t.Errorf("an urgent worker that works %v between two calls left %d of 400 departures to the others, want 20", work, bulk)
			}
			q.Close()
			synctest.Wait()
		})
	}
}

// A costly caller leaves the line without a departure. Its savings do not let less urgent callers
// depart in a row: the urgent have 19 of 20 departures from then on too.
func TestWhatIsSavedForACallerGoesWithIt(t *testing.T) {
	const costly, cheap = 1000, 300 // permits of the one, and how many others ask for one
	for _, c := range []struct {
		name  string
		wait  time.Duration // longest, of the costly one
		gives bool          // it gives up; false: it is shed or late
		ends  string
	}{{"gives up", 0, true, "costly 6m40.05s canceled"}, {"is shed", 0, false, "costly 6m40.05s full"}, {"is late", 500 * time.Second, false, "costly 6m40.1s deadline"}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, throttle.TokenBucket(10, time.Second, costly))
				q.MaxWaiting, q.Overflow = 1+cheap+3, shaping.OverflowShedOldest
				if err := q.WaitN(t.Context(), costly); err != nil {
					t.Fatal(err)
				}
				j := newJournal(t, q)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				j.come(ctx, "costly", &shaping.Turn{N: costly, MaxWait: c.wait, Priority: shaping.PriorityLow})
				var d departed
				d.wait(shaping.WithPriority(t.Context(), shaping.PriorityLow), q, "cheap", cheap)
				var last time.Time // when an urgent caller departed
				var longest time.Duration
				for range 3 {
					go func() {
						for q.Wait(shaping.WithPriority(t.Context(), shaping.PriorityHigh)) == nil {
							if now := time.Now(); !last.IsZero() {
								longest = max(longest, now.Sub(last))
							}
							last = time.Now()
						}
					}()
				}
				time.Sleep(400*time.Second + 50*time.Millisecond)
				if c.gives {
					leave()
				} else if c.wait == 0 {
					d.wait(shaping.WithPriority(t.Context(), shaping.PriorityLow), q, "cheap", 1)
				}
				time.Sleep(100 * time.Second)
				q.Close()
				j.want(c.ends)
				if n := len(d.list()); longest != 200*time.Millisecond || n < 50 || n > 51 {
					t.Errorf("no urgent caller departed for %v, and %d of 1000 others, want 200ms and 50", longest, n)
				}
			})
		})
	}
}

// A newcomer ahead of its class's first caller can make another class's caller the head. That one
// is asked for at once.
func TestCallerWhomANewcomerMakesTheHeadGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(10, time.Second))
		j := newJournal(t, q)
		come := func(at time.Duration, name string, turn *shaping.Turn) {
			time.Sleep(at*time.Millisecond - time.Since(j.start))
			j.come(t.Context(), name, turn)
		}
		come(0, "first", one())
		come(0, "a1", &shaping.Turn{N: 1, Tenant: "a"})
		come(0, "a2", &shaping.Turn{N: 2, Tenant: "a"})
		come(0, "c", &shaping.Turn{N: 1, Tenant: "c", MaxWait: 105 * time.Millisecond}) // so a1 is more than the share of a
		come(110, "low", &shaping.Turn{Priority: shaping.PriorityLow})                  // is owed a share from 200ms on, behind a2
		come(120, "urgent", &shaping.Turn{N: 1, Priority: shaping.PriorityHigh})
		come(150, "head", &shaping.Turn{N: 3, Priority: shaping.PriorityHigh})
		come(250, "b", &shaping.Turn{N: 2, Tenant: "b"}) // a2 had more, so b goes before it, but came after low
		time.Sleep(10 * time.Millisecond)
		q.Close()
		j.want("first 0s", "a1 100ms", "c 100ms deadline", "urgent 200ms", "low 250ms", "a2 260ms closed", "b 260ms closed", "head 260ms closed")
	})
}

func TestTurnKeepsItsPlaceInItsClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		turn := shaping.Turn{N: 1, Tenant: "first"}
		if err := q.WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		var d departed
		d.wait(shaping.WithTenant(t.Context(), "second", 1), q, "second", 3)
		d.wait(shaping.WithPriority(t.Context(), shaping.PriorityHigh), q, "urgent", 1)
		go func() {
			if err := q.WaitTurn(t.Context(), &turn); err != nil {
				t.Error(err)
			}
			d.note("again")
		}()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []string{"urgent", "again", "second", "second", "second"}; !slices.Equal(d.list(), want) {
			t.Errorf("departed %v, want %v", d.list(), want)
		}
	})
}

// Two tenants share 100/s with callers under other names. Each name costs only its own share,
// whether it is new or not. A weight counts for one worker that comes back at once as for a crowd.
func TestNamesDoNotChangeWhatTenantsShare(t *testing.T) {
	type tenant struct {
		name    func(call int) string
		workers int
		n       int // permits of each call
		weight  int
		want    int // permits of 6000
	}
	same := func(name string) func(int) string { return func(int) string { return name } }
	for what, tenants := range map[string][]tenant{
		"new names": {
			{same("waits"), 20, 1, 1, 2000},
			{func(call int) string { return fmt.Sprint("new ", call) }, 2, 1, 1, 4000},
		},
		"names that come back": {
			{same("waits"), 20, 1, 1, 2000},
			{func(call int) string { return fmt.Sprint("again ", call%2000) }, 2, 1, 1, 4000},
		},
		"new names of large calls": {
			{same("waits"), 20, 1, 1, 2000},
			{func(call int) string { return fmt.Sprint("large ", call) }, 2, 10, 1, 4000},
		},
		"one worker each":         {{same("heavy"), 1, 1, 3, 4500}, {same("light"), 1, 1, 1, 1500}},
		"one worker each by cost": {{same("large"), 1, 10, 1, 3000}, {same("small"), 1, 1, 1, 3000}},
		"a weight without a name": {{same(""), 20, 1, 9, 3000}, {same("light"), 20, 1, 1, 3000}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, throttle.TokenBucket(100, time.Second, 10))
				if err := q.WaitN(t.Context(), 10); err != nil {
					t.Fatal(err)
				}
				had, calls := make([]atomic.Int64, len(tenants)), new(atomic.Int64)
				for i, c := range tenants {
					for range c.workers {
						go func() {
							for {
								ctx := shaping.WithTenant(t.Context(), c.name(int(calls.Add(1))), c.weight)
								if q.WaitTurn(ctx, &shaping.Turn{N: c.n}) != nil {
									return
								}
								had[i].Add(int64(c.n))
							}
						}()
						synctest.Wait()
					}
				}
				time.Sleep(time.Minute + time.Millisecond)
				q.Close()
				synctest.Wait()
				for i, c := range tenants {
					if n := int(had[i].Load()); n < c.want-60 || n > c.want+60 {
						t.Errorf("tenant %d had %d permits, want about %d", i, n, c.want)
					}
				}
			})
		})
	}
}

// The retries of a flood come back together. Each keeps its place among its tenant's callers, and
// another tenant's single call waits for one of them at most.
func TestRetriesOfAFloodDelayAnotherTenantByOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 300))
		again := make([]shaping.Turn, 300)
		for i := range again {
			again[i] = shaping.Turn{N: 1, Tenant: "flood"}
			if err := q.WaitTurn(t.Context(), &again[i]); err != nil {
				t.Fatal(err)
			}
		}
		j := newJournal(t, q)
		j.come(t.Context(), "new", &shaping.Turn{N: 1, Tenant: "flood"})
		for i := range again {
			go func() {
				if q.WaitTurn(t.Context(), &again[i]) == nil && i < 3 {
					j.note(fmt.Sprint("again ", i), nil)
				}
			}()
			synctest.Wait()
		}
		j.come(t.Context(), "single", &shaping.Turn{N: 1, Tenant: "single"})
		time.Sleep(450 * time.Millisecond)
		q.Close()
		j.want("again 0 100ms", "single 200ms", "again 1 300ms", "again 2 400ms", "new 450ms closed")
	})
}

// A tenant whose calls cost more of the scarce limit gets fewer of them.
func TestTenantsShareTheLimitThatTheyBurden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := throttle.LeakyBucket(1000, time.Second).Of("tokens")
		q := newQueue(t, throttle.LeakyBucket(100, time.Second), tokens)
		if err := q.WaitTurn(t.Context(), &shaping.Turn{Each: []int{1, 1000}}); err != nil {
			t.Fatal(err)
		}
		var d departed
		for name, each := range map[string][]int{"large": {1, 900}, "small": {1, 100}} {
			for range 100 {
				go func() {
					if q.WaitTurn(t.Context(), &shaping.Turn{Each: each, Tenant: name}) == nil {
						d.note(name)
					}
				}()
			}
		}
		synctest.Wait()
		time.Sleep(19 * time.Second) // 18,000 tokens after the first call's
		synctest.Wait()
		large := 0
		for _, name := range d.list() {
			if name == "large" {
				large++
			}
		}
		small := len(d.list()) - large
		if apart := large*900 - small*100; apart < -1000 || apart > 1000 || large+small < 90 {
			t.Errorf("%d large and %d small calls departed, of tokens %d apart, want 9,000 tokens each, a call of each apart at most", large, small, apart)
		}
		q.Close()
	})
}

func TestUrgentArrivalEndsAWaitThatItMakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 2))
		if err := q.WaitN(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		patient, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		refused := make(chan error, 1)
		go func() { refused <- q.WaitN(patient, 2) }()
		time.Sleep(1200 * time.Millisecond)
		if err := q.Wait(shaping.WithPriority(t.Context(), shaping.PriorityHigh)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-refused:
			if err == nil {
				t.Error("a caller departed on permits that an urgent one took")
			}
		default:
			t.Error("the caller whose permits are due after its deadline still waits")
		}
	})
}

func ExampleWithPriority() {
	limiter, err := throttle.Local{}.Limiter("sms", throttle.LeakyBucket(5, time.Second))
	if err != nil {
		panic(err)
	}
	q := shaping.NewQueue(limiter)
	var line sync.WaitGroup
	send := func(ctx context.Context, what string) {
		line.Go(func() {
			if err := q.Wait(ctx); err == nil {
				fmt.Println(what)
			}
		})
		time.Sleep(time.Millisecond) // the next one comes later
	}
	ctx := context.Background()
	send(ctx, "the first departs at once")
	send(shaping.WithPriority(ctx, shaping.PriorityLow), "bulk")
	send(shaping.WithPriority(ctx, shaping.PriorityHigh), "one-time password")
	line.Wait()
	// Output:
	// the first departs at once
	// one-time password
	// bulk
}
