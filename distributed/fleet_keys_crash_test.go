package distributed_test

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// planOf returns the limit of a key. Every fifth customer's plan is below its part of the account,
// and the others' are above.
func planOf(key string) throttle.Limit {
	switch {
	case key == "account":
		return throttle.TokenBucket(pooled, time.Second, 10)
	case strings.HasSuffix(key, "0") || strings.HasSuffix(key, "5"):
		return throttle.TokenBucket(pooled/customers*8/10, time.Second, 4)
	default:
		return throttle.TokenBucket(planned, time.Second, 4)
	}
}

// serveCustomers has each customer call as often as its limits allow, until the process is killed.
func (j job) serveCustomers() int {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", j.Vendor)
	}
	base := stamped{&http.Transport{DialContext: dial, MaxIdleConnsPerHost: customers * j.Workers}}
	transport, end := newCustomers(place{Addrs: []string{j.Redis}}.client(), j.Replicas, planned, base, func(customer string) []string { return []string{customer, "account"} })
	defer end()
	transport.LimitsFor = func(key string) []throttle.Limit { return []throttle.Limit{planOf(key)} }
	var all sync.WaitGroup
	for i := range customers * j.Workers {
		all.Go(func() {
			for {
				_ = callWith(context.Background(), transport, "customer"+strconv.Itoa(i%customers))
			}
		})
	}
	all.Wait()
	return 0
}

// stamped adds the instant of departure to the name of a call.
type stamped struct{ http.RoundTripper }

func (s stamped) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	name := req.Header.Get(testserver.DefaultIDHeader)
	req.Header.Set(testserver.DefaultIDHeader, name+" "+strconv.FormatInt(int64(now()), 10))
	return s.RoundTripper.RoundTrip(req)
}

// A ledger is the vendor's own record of each customer's calls.
type ledger struct {
	of     map[string][]throttle.Instant // by customer, and of the account, in order
	spread time.Duration                 // longest time between departure and arrival
}

// record returns what the vendor recorded between two instants.
func record(vendor *testserver.Vendor, from, to throttle.Instant) *ledger {
	l := &ledger{of: make(map[string][]throttle.Instant)}
	for _, a := range vendor.Arrivals() {
		at := throttle.InstantOf(a.Wall)
		if at < from || at > to {
			continue
		}
		name, stamp, _ := strings.Cut(a.ID, " ")
		left, _ := strconv.ParseInt(stamp, 10, 64)
		l.spread = max(l.spread, at.Sub(throttle.Instant(left)))
		l.of["account"], l.of[name] = append(l.of["account"], at), append(l.of[name], at)
	}
	return l
}

// judge judges each key by the bound of its limit.
func (l *ledger) judge(t *testing.T, of func(limit throttle.Limit) bound) {
	t.Helper()
	for name, at := range l.of {
		limit := planOf(name)
		b := of(limit)
		b.x = throttle.Tolerance(limit) + max(spread, l.spread)
		b.judge(t, name, at)
	}
}

// judgeShares fails the test if a customer had less than half of a fair share.
func (l *ledger) judgeShares(t *testing.T, what string) {
	t.Helper()
	fair := len(l.of["account"]) / customers
	least, most := fair, fair
	for i := range customers {
		n := len(l.of["customer"+strconv.Itoa(i)])
		least, most = min(least, n), max(most, n)
	}
	t.Logf("%s: %d calls, %d to %d of a customer", what, len(l.of["account"]), least, most)
	if least < fair/2 {
		t.Errorf("%s: a customer had %d calls, want half of the fair %d at least", what, least, fair)
	}
}

// Processes share the limits of an account and its customers. One of them is killed, another
// starts, and Redis is killed and restarted. The vendor never sees more than each key may send,
// customers share the account, and traffic resumes within seconds.
func TestProcessesKeepTheBoundOfEachKey(t *testing.T) {
	t.Parallel()
	const phase = 2 * time.Second
	processes := orShort(3, 2)
	server, vendor := redistest.Start(t), &testserver.Vendor{}
	front := testserver.Run(t, testserver.Listen, vendor)
	j := job{Redis: server.Addr(), Vendor: strings.TrimPrefix(front.URL, "http://"), Workers: 2, Replicas: processes}
	began := now()
	var all []*exec.Cmd
	for range processes {
		all = append(all, employ(t, j))
	}
	back := func(what string, share float64) {
		t.Helper()
		const lately = 400 * time.Millisecond
		from := now()
		took := await(t, what, func() bool {
			at := now()
			return float64(len(record(vendor, max(from, at.Add(-lately)), at).of["account"])) >= share*pooled*lately.Seconds()
		})
		if t.Logf("%s: %v", what, took); took > 5*time.Second {
			t.Errorf("%s took %v, want 5 s at most", what, took)
		}
	}
	stay := func(what string) (from, to throttle.Instant) {
		t.Helper()
		from = now()
		time.Sleep(phase)
		to = now()
		record(vendor, from, to).judgeShares(t, what)
		return from, to
	}
	back("the first calls", 0.5)
	stay("all processes")
	if !testing.Short() { // the race detector sees nothing of a process that is killed
		_ = all[0].Process.Kill()
		back("calls after a process was killed", 0.5)
		stay("the others")
		employ(t, j)
		time.Sleep(phase / 2)
		stay("with a new one")
	}

	gone := now()
	record(vendor, began, gone).judge(t, func(limit throttle.Limit) bound {
		return bound{rate: rateOf(limit), burst: float64(limit.Burst)}
	})
	server.Kill()
	time.Sleep(phase / 2) // permits granted before are spent
	alone, until := stay("without Redis")
	record(vendor, alone, until).judge(t, func(limit throttle.Limit) bound {
		return bound{rate: distributed.DefaultShare * rateOf(limit), burst: float64(processes)}
	})
	server.Restart()
	back("calls after Redis was back", 0.75)
	stay("Redis is back")
	record(vendor, began, now()).judge(t, func(limit throttle.Limit) bound {
		lost := spell{from: gone, to: now(), more: float64(limit.Burst + processes)} // Redis counts from zero
		return bound{rate: rateOf(limit), burst: float64(limit.Burst), spells: []spell{lost}}
	})
}
