package lanes_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// apply applies a configuration.
func apply(t *testing.T, transport *weir.Transport, text string) {
	t.Helper()
	var c weir.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if err := transport.Apply(c); err != nil {
		t.Fatal(err)
	}
}

// applyTo applies limits of the customer "a" and of the account.
func applyTo(t *testing.T, transport *weir.Transport, a, account string) {
	t.Helper()
	apply(t, transport, `{"lanes": {"a": ["`+a+`"], "account": ["`+account+`"]}}`)
}

// nobodyLeft fails the test if a lane still counts a call.
func nobodyLeft(t *testing.T, transport *weir.Transport) {
	t.Helper()
	var left []weir.LaneState
	for range 50 { // a caller that gives up while another goroutine runs the line is removed by that one
		left = slices.DeleteFunc(transport.Snapshot(), func(s weir.LaneState) bool { return s.Waiting == 0 && s.InFlight == 0 && s.Requests == 0 })
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, s := range left {
		t.Errorf("lane %q has %d waiting, %d in flight of %d requests, want none", s.Key, s.Waiting, s.InFlight, s.Requests)
	}
}

// Limits change at 1.5 s, while calls of a customer and of its account wait. Each call is
// rescheduled in both lanes, and spent permits stay spent.
func TestApplyTimesCallsAnewInEachLane(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name                 string
		a, account           string
		laterA, laterAccount string
		want                 []time.Duration
	}{
		{"the customer's is higher", "1/s burst 1", "20/s burst 1", "10/s burst 1", "20/s burst 1", []time.Duration{0, 1000 * ms, 1550 * ms, 1650 * ms, 1750 * ms}},
		{"the account's is higher", "20/s burst 1", "1/s burst 1", "20/s burst 1", "10/s burst 1", []time.Duration{0, 1000 * ms, 1550 * ms, 1650 * ms, 1750 * ms}},
		{"the account holds next", "1/s burst 1", "20/s burst 1", "20/s burst 1", "2/s burst 1", []time.Duration{0, 1000 * ms, 1525 * ms, 2025 * ms, 2525 * ms}},
		{"the customer holds next", "20/s burst 1", "1/s burst 1", "2/s burst 1", "20/s burst 1", []time.Duration{0, 1000 * ms, 1525 * ms, 2025 * ms, 2525 * ms}},
		{"the customer's is lower", "1/s burst 1", "20/s burst 1", "1/m burst 1", "20/s burst 1", []time.Duration{0, 1000 * ms, 31500 * ms, 91500 * ms, 151500 * ms}},
		{"nothing changes", "1/s burst 1", "20/s burst 1", "1/s burst 1", "20/s burst 1", harness.Spaced(0, 1000*ms, 5)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &weir.Transport{Keys: fromHeader}
				applyTo(t, transport, test.a, test.account)
				r := harness.ObeyingRig(t, &testserver.Vendor{}, transport)
				var wg sync.WaitGroup
				send(r, &wg, "call", "a account", 5)
				time.Sleep(1500 * ms)
				applyTo(t, transport, test.laterA, test.laterAccount)
				wg.Wait()
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), test.want)
				nobodyLeft(t, transport)
			})
		})
	}
}

// Calls that would be too late under a customer's lower limit are rejected at once, and the error
// names that lane. Another customer's calls get the account's permits meanwhile.
func TestApplyRejectsCallsThatWouldBeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		transport := &weir.Transport{Keys: fromHeader, Line: weir.Line{MaxWait: 10 * time.Second}}
		applyTo(t, transport, "100/m burst 1", "2/s burst 1")
		r := harness.ObeyingRig(t, &testserver.Vendor{}, transport)
		rejected := make(chan harness.Answer, 10)
		for _, customer := range strings.Split("aaaaabbbbb", "") {
			go func() {
				if got := r.Do(with(r, customer, customer+" account")); got.Err != nil {
					rejected <- got
				}
			}()
			synctest.Wait()
		}
		time.Sleep(1550 * ms)
		applyTo(t, transport, "1/h burst 1", "2/s burst 1")
		time.Sleep(time.Minute)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, 500*ms, 7))
		harness.WantEqual(t, "customers", harness.IDs(r.Vendor.Arrivals()), strings.Split("ababbbb", ""))
		if len(rejected) != 3 {
			t.Errorf("%d calls were rejected, want 3", len(rejected))
		}
		for range len(rejected) {
			got := <-rejected
			if e, ok := errors.AsType[*weir.Error](got.Err); !ok || e.Lane != "a" || got.At != 1550*ms {
				t.Errorf("a call that waits for too long = %v at %v, want lane a at 1.55s", got.Err, got.At)
			}
		}
		nobodyLeft(t, transport)
	})
}

// The configurations differ in rates, algorithms, and number and order of limits. The limit "all"
// counts what each lane has spent.

const countAll = `"1000/h burst 100000 name all"`

var configurations = []string{
	`{"limits": ["100/s burst 5", ALL], "lanes": {"account": ["300/s burst 10", ALL]}}`,
	`{"limits": ["30/s burst 2", ALL], "lanes": {"account": [ALL, "log 150/s"]}}`,
	`{"limits": [ALL, "sliding 50/s"], "lanes": {"account": ["200/s burst 1", ALL], "b": ["5/s burst 1", ALL]}}`,
	`{"limits": ["50/s burst 1", "leaky 40/s", ALL], "lanes": {"account": ["gcra 250/s burst 5", ALL]}}`,
}

// Limits change repeatedly under traffic. In the end each lane has spent its arrivals, and permits
// that were void because their call woke up too late. Permits returned after a change do not count
// in the new limit: less than one in twenty. The vendor sees no more than the highest limits allow,
// and no call is stuck.
func TestApplyInTheMiddleOfTrafficWithKeys(t *testing.T) {
	transport := &weir.Transport{Keys: fromHeader, Learn: weir.LearnOff, Line: weir.Line{MaxWait: 300 * time.Millisecond}}
	change := func(i int) {
		apply(t, transport, strings.ReplaceAll(configurations[i%len(configurations)], "ALL", countAll))
	}
	change(0)
	r := harness.SocketRig(t, &testserver.Vendor{}, transport)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 60 {
		wg.Go(func() {
			keys := []string{"a account", "b account", "c account", "account", "d a account"}[i%5]
			for {
				select {
				case <-stop:
					return
				default:
				}
				one := weir.WithPriority(t.Context(), []weir.Priority{weir.PriorityLow, weir.PriorityNormal, weir.PriorityHigh}[rand.IntN(3)])
				if got := r.Do(with(r, keys, keys).WithContext(one)); got.Err != nil {
					time.Sleep(time.Millisecond) // it was rejected at once
				}
			}
		})
	}
	for i := range 100 {
		time.Sleep(20 * time.Millisecond)
		change(i)
	}
	change(0)
	after := 0
	for second := 0; second < 5 && after < 60; second++ { // a busy machine voids permits
		before := len(r.Vendor.Arrivals())
		time.Sleep(time.Second)
		after = len(r.Vendor.Arrivals()) - before
	}
	if after < 60 {
		t.Errorf("%d calls in the fifth second after the changes, want a fifth of 300 at least", after)
	}
	close(stop)
	wg.Wait()
	nobodyLeft(t, transport)
	arrivals := r.Vendor.Arrivals()
	spent := make(map[string]int)
	for _, a := range arrivals {
		for _, key := range strings.Fields(a.ID) {
			spent[key]++
		}
	}
	t.Logf("%d calls, by lane %v", len(arrivals), spent)
	if most := int(300*arrivals.Span().Seconds()) + 10 + 300/10; len(arrivals) > most {
		t.Errorf("%d calls in %v, want %d at most", len(arrivals), arrivals.Span(), most)
	}
	for _, s := range transport.Snapshot() {
		for _, l := range s.Limits {
			used, most := float64(l.Limit.Burst)-l.Headroom, spent[s.Key]*21/20+int(s.Stale)
			if l.Limit.Name == "all" && (used > float64(most) || used < float64(spent[s.Key]-2)) { // 1000 are earned an hour
				t.Errorf("lane %q has spent %.1f permits for %d calls and %d void permits", s.Key, used, spent[s.Key], s.Stale)
			}
		}
	}
	for _, keys := range []string{"a account", "b account", "c d account"} {
		r.Want("call of "+keys, r.Do(with(r, "last", keys)), 200)
	}
}
