package distributed_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// standstill is the longest time without a departure while a call could depart.
const standstill = time.Second

// The round trip to Redis grows beyond the tolerance, as after a failover to another region, and
// shrinks again. The store must not request forever when every reply contains only void permits.
func TestALongerWayToRedisStopsNobody(t *testing.T) {
	t.Parallel()
	// At 20/s the tolerance is 100 ms, which also allows for a busy machine; at 100/s it is 20 ms.
	trips, rate := []time.Duration{300}, 20
	if long {
		trips, rate = []time.Duration{30, 60, 100, 200, 300}, 100
	}
	for _, trip := range trips {
		trip *= time.Millisecond
		for what, c := range map[string]config{"saturated": {Callers: 40}, "idle": {Callers: -1, Arrivals: float64(rate) / 10}} {
			c.Limits = []throttle.Limit{throttle.TokenBucket(rate, time.Second, 5)}
			t.Run(fmt.Sprint(what, " ", trip), func(t *testing.T) { testLongerWay(t, c, trip) })
			c.Deadline, c.MaxDeadline = patience, patience // no call fails, so this is not a loss
			t.Run(fmt.Sprint(what, " ", trip, " patiently"), func(t *testing.T) { testLongerWay(t, c, trip) })
		}
	}
}

// In exact time the whole rate is used two seconds after the round trip has grown.
func TestALongerWayToRedisCostsNothing(t *testing.T) {
	for _, deadline := range []time.Duration{0, patience} {
		synctest.Test(t, func(t *testing.T) {
			const rate, from, until = 20, 2 * time.Second, 12 * time.Second
			set := func(s *distributed.Store) { s.Deadline, s.MaxDeadline = deadline, deadline }
			f := newBubbleFleetOf(t, 2, time.Millisecond, set, throttle.TokenBucket(rate, time.Second, 5))
			f.meet()
			f.server.Delay(300 * time.Millisecond)
			for replica := range f.queues {
				f.work(replica, 20, until)
			}
			f.wg.Wait()
			n := 0
			for _, at := range slices.Concat(f.left...) {
				if from < at && at <= until {
					n++
				}
			}
			t.Logf("deadline %v: %d departed", deadline, n)
			if all := int(rate * (until - from).Seconds()); n < all*95/100 || n > all+rate {
				t.Errorf("deadline %v: %d departed in %v, want %d", deadline, n, until-from, all)
			}
		})
	}
}

func testLongerWay(t *testing.T, c config, trip time.Duration) {
	t.Parallel()
	const dwell = 4 * time.Second
	f := newFleet(t, plan{members: 2, config: c})
	each(f.links, func(p *redistest.Proxy) { p.Delay(time.Millisecond) })()
	f.steady()
	time.Sleep(standstill)
	for _, d := range []time.Duration{trip, time.Millisecond} {
		from := now()
		each(f.links, func(p *redistest.Proxy) { p.Delay(d) })()
		time.Sleep(dwell)
		f.progressed(fmt.Sprint("at ", d), from, now(), d)
	}
	f.stop()
}

// progressed fails the test if the fleet stopped in a window, or after a second departed at less
// than half of its rate; a busy machine voids permits. Of callers at a fifth of the rate none may
// wait for 3*standstill + trip, and half of them no longer than a few round trips.
func (f *fleet) progressed(what string, from, to throttle.Instant, trip time.Duration) {
	f.t.Helper()
	settled := from.Add(standstill)
	if f.plan.Callers > 0 {
		at := f.journal.instants(func(d departure) bool { return from <= d.At && d.At <= to })
		gap := longest(from, to, at)
		f.t.Logf("%s: no departure for %v", what, gap)
		if gap > 2*standstill {
			f.t.Errorf("%s: no departure for %v, want %v at most", what, gap, 2*standstill)
		}
		f.departs(what, 0.5*rateOf(f.plan.Limits[0]), settled, to)
		return
	}
	all, waits := f.between(from, to.Add(-standstill)), f.between(settled, to.Add(-standstill))
	slices.Sort(all)
	slices.Sort(waits)
	f.t.Logf("%s: waits %s, once settled %s", what, quantiles(all), quantiles(waits))
	if most := 3*standstill + trip; len(all) == 0 || all[len(all)-1] > most {
		f.t.Errorf("%s: one of %d callers waited longer than %v", what, len(all), most)
	}
	if most := 3*trip + standstill/2; len(waits) == 0 || waits[len(waits)/2] > most {
		f.t.Errorf("%s: half of %d callers waited longer than %v", what, len(waits), most)
	}
}

// departs fails the test unless the fleet reaches a rate in a window or in one of the next five: a
// machine that stops loses permits.
func (f *fleet) departs(what string, want float64, from, to throttle.Instant) {
	f.t.Helper()
	window := to.Sub(from)
	for range 6 {
		time.Sleep(to.Sub(now()))
		rate := float64(f.journal.count(from, to)) / window.Seconds()
		f.t.Logf("%s: %.1f/s", what, rate)
		if rate >= want {
			return
		}
		from, to = to, to.Add(window)
	}
	f.t.Errorf("%s: want %.1f/s at least", what, want)
}

// longest returns the longest time without a departure in a window.
func longest(from, to throttle.Instant, at []throttle.Instant) time.Duration {
	var gap time.Duration
	last := from
	for _, i := range append(slices.Clone(at), to) {
		gap, last = max(gap, i.Sub(last)), i
	}
	return gap
}

// A Redis that accepts connections but never answers lets a replica depart at its share at once,
// after its first caller waited. At half of 10/s for a hundred replicas the next permit is twenty
// seconds later. If the machine stopped, its permit may be void, and the test proves nothing.
func TestShareLetsTheFirstGoOnceRedisIsSilent(t *testing.T) {
	t.Parallel()
	for range 10 {
		waited, stale := firstWhileSilent(t)
		if stale == 0 {
			if waited > 1500*time.Millisecond {
				t.Errorf("the first caller waited %v, want it to go soon after the deadline of 50ms", waited)
			}
			return
		}
	}
	t.Error("ten permits in a row were void when their callers woke up")
}

// firstWhileSilent returns how long the first caller waits for a silent Redis. It also counts
// permits voided until it departed, or until two seconds had passed.
func firstWhileSilent(t *testing.T) (waited time.Duration, stale uint64) {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // accepted by the kernel, never read
	client := redis.NewClient(&redis.Options{Addr: silent.Addr().String()})
	defer client.Close()
	store := distributed.New(client, "silent")
	store.Logger = slog.New(slog.DiscardHandler)
	defer store.Close()
	limiter, err := store.Limiter("lane", throttle.LeakyBucket(10, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	q := shaping.NewQueue(limiter)
	defer q.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	if err := q.Wait(ctx); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return time.Since(began), q.State().Stale
}

// Two processes lose Redis twice, over real sockets, and continue each time. The second time they
// use half of the last learned rate, 40/s, not of the 200/s known at the first.
func TestASecondLossIsHeldToWhatWasLearnedLast(t *testing.T) {
	t.Parallel()
	b := newBand(t, 2, &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(200, time.Second, 5)}, Service: 5 * time.Millisecond})
	lost := func(p *weir.Transport) bool { return p.Snapshot()[0].Store.Lost }
	for _, rate := range []float64{200, 40} {
		b.vendor.SetLimits(testserver.TokenBucket(int(rate), time.Second, 5))
		for end := time.Now().Add(patience); time.Now().Before(end) && !b.learned(0.5*rate, 1.5*rate); {
			time.Sleep(5 * time.Millisecond) // a slow machine may never learn it
		}
		each(b.links, gone)()
		await(t, "both to have lost Redis", func() bool { return lost(b.all[0]) && lost(b.all[1]) })
		time.Sleep(standstill / 2) // permits granted before are spent
		from := time.Since(b.vendor.Start())
		time.Sleep(2 * standstill)
		calls := 0
		for _, a := range b.vendor.Arrivals() {
			if a.At >= from {
				calls++
			}
		}
		got := float64(calls) / (time.Since(b.vendor.Start()) - from).Seconds()
		t.Logf("of %v/s, of which %.1f/s is known, two processes without Redis called %.1f/s", rate, learnedRate(b.all[0]), got)
		if calls == 0 || got > 1.5*rate { // half of 200/s would be 100
			t.Errorf("of %v/s two processes without Redis called %.1f/s, want half", rate, got)
		}
		each(b.links, (*redistest.Proxy).Pass)()
		took := await(t, "both to share again", func() bool { return !lost(b.all[0]) && !lost(b.all[1]) })
		if t.Logf("back after %v", took); took > patience {
			t.Errorf("after the loss at %v/s Redis was used again after %v, want 2s on a machine with time for it", rate, took)
		}
	}
}

// An operator ends a pause, and one process misses the message. Its callers have deadlines within
// the pause and are rejected, so its line is empty. It asks Redis all the same, and its callers
// depart again within seconds.
func TestAPausesEndReachesAProcessThatRejectsAll(t *testing.T) {
	t.Parallel()
	shared := redistest.Start(t)
	var queues [2]*shaping.Queue
	for i := range queues {
		client := redis.NewClient(&redis.Options{Addr: shared.Addr()})
		store := distributed.New(client, "paused")
		store.Logger = slog.New(slog.DiscardHandler)
		store.FirstDeadline, store.Deadline, store.MaxDeadline = patience, patience, patience // a busy machine loses no store
		t.Cleanup(func() { _ = store.Close(); _ = client.Close() })
		limiter, err := store.Limiter("lane", throttle.TokenBucket(100, time.Second, 1))
		if err != nil {
			t.Fatal(err)
		}
		queues[i] = shaping.NewQueue(limiter)
		if err := queues[i].Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	goes := func() bool {
		turn := shaping.Turn{N: 1, MaxWait: standstill}
		return queues[1].WaitTurn(t.Context(), &turn) == nil
	}
	const pause = 2 * patience
	queues[0].Pause(pause)
	await(t, "the pause", func() bool { return !goes() })
	time.Sleep(2 * standstill) // it has checked the message with Redis
	if _, err := shared.Do("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
		t.Fatal(err)
	}
	queues[0].Reconcile(throttle.Fact{Resumed: true})
	took := await(t, "a departure", goes)
	t.Logf("the first departed %v after the pause of %v had ended", took, pause)
}

// Callers of different costs progress over a real Redis, each kind at half of its share. The bound is
// a tenth of the rate: a machine that stops for longer than the tolerance of 33 ms voids permits. In
// exact time TestCallersOfDifferentCostsUseTheWholeRate requires 99 % and the whole share.
func TestCallersOfDifferentCostsProgress(t *testing.T) {
	t.Parallel()
	shared := redistest.Start(t)
	for name, all := range mixedCosts {
		all = slices.Clone(all)
		for i := range all {
			all[i].least /= 2
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := redis.NewClient(&redis.Options{Addr: shared.Addr()})
			store := distributed.New(client, "costs")
			store.Logger = slog.New(slog.DiscardHandler)
			store.FirstDeadline, store.Deadline, store.MaxDeadline = patience, patience, patience
			t.Cleanup(func() { _ = store.Close(); _ = client.Close() })
			limiter, err := store.Limiter(name, throttle.TokenBucket(300, time.Second, 10))
			if err != nil {
				t.Fatal(err)
			}
			q := shaping.NewQueue(limiter)
			var got []had
			for range 10 { // a machine that stops loses permits
				got = call(t, q, manyOf(all), 200*time.Millisecond, 1500*time.Millisecond)
				sum, each := judge(all, got)
				t.Logf("of 450 permits %d were used: %+v", sum, got)
				if sum >= 45 && each {
					return
				}
			}
			t.Errorf("%+v of 450 permits, want 45 at least and each kind half of its share", got)
		})
	}
}

// Customers of two Transports over a real Redis use nine tenths of an account without a burst, or in
// the best of six times three tenths on a machine that stops. The vendor sees no more than the bound
// of each key. In exact time TestCustomersUseTheRateOfTheirAccount requires 0.87.
func TestCustomersUseAnAccountThatSavesNothing(t *testing.T) {
	t.Parallel()
	limitOf := func(key string) throttle.Limit {
		if key == "account" {
			return throttle.TokenBucket(50, time.Second, 1)
		}
		return throttle.TokenBucket(planned, time.Second, 4)
	}
	server, f := redistest.Start(t), &customerFleet{vendor: &testserver.Vendor{}}
	front := testserver.Run(t, testserver.Listen, f.vendor)
	for range 2 {
		keys := func(customer string) []string { return []string{customer, "account"} }
		transport, end := newCustomers(place{Addrs: []string{server.Addr()}}.client(), 2, planned, stamped{front.Transport()}, keys)
		transport.LimitsFor = func(key string) []throttle.Limit { return []throttle.Limit{limitOf(key)} }
		t.Cleanup(end)
		f.replicas = append(f.replicas, transport)
	}
	const d = 2 * time.Second
	used := 0.0
	for round := 0; round < 6 && used < 0.9; round++ { // a machine that stops loses permits
		from := now().Add(d / 4)
		calls, toRedis := f.call(t, 1, d+d/4)
		share := float64(len(record(f.vendor, from, from.Add(d)).of["account"])) / (50 * d.Seconds())
		t.Logf("%.2f of the account's rate, %.2f calls to Redis each", share, float64(toRedis)/float64(calls))
		used = max(used, share)
	}
	if used < 0.3 {
		t.Errorf("%.2f of the account's rate was used, want 0.3 at least on any machine", used)
	}
	all := record(f.vendor, 0, now())
	for key, at := range all.of {
		limit := limitOf(key)
		bound{rate: rateOf(limit), burst: float64(limit.Burst), x: throttle.Tolerance(limit) + max(spread, all.spread)}.judge(t, key, at)
	}
}

// Eight processes share a bucket that holds fewer permits, over a real Redis and sockets. They use its
// rate within a minute, on a machine that is busy, too. The tests in bubbles have the exact figures.
func TestSmallBucketOfManyProcessesProgresses(t *testing.T) {
	t.Parallel()
	const rate, d = 50, 3 * time.Second
	vendor := &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(rate, time.Second, 5)},
		Styles:  []testserver.Style{testserver.RateLimit, testserver.RetryAfterSeconds},
		Service: 5 * time.Millisecond,
	}
	newBand(t, 8, vendor)
	used := 0.0
	for round := 0; round < 20 && used < 0.8; round++ {
		before, began := vendor.Arrivals().Count(http.StatusOK), time.Now()
		time.Sleep(d)
		used = float64(vendor.Arrivals().Count(http.StatusOK)-before) / (rate * time.Since(began).Seconds())
		t.Logf("%.2f of the rate, %d refused so far", used, vendor.Arrivals().Count(http.StatusTooManyRequests))
	}
	if used < 0.5 {
		t.Errorf("%.2f of the rate is used, want half of it at least on any machine", used)
	}
}
