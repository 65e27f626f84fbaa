package distributed_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A town runs more replicas than a machine could hold as processes, in virtual time. Each has its
// own client, store and queue. An hour of it has four parts:
//
//	0 to 1/3    callers come at random instants, at 0.9 of the rate
//	1/3 to 2/3  the same, and the vendor asks for a pause
//	2/3 to 5/6  callers come again as soon as they have departed
//	5/6 to 1    half of the replicas have died
//
// The figures in the package documentation come from 1,000 replicas and about 1,000,000 calls an
// hour:
//
//	WEIR_SCALE=1000 go test -run TestTown -timeout 2h -v ./distributed
type town struct {
	t        *testing.T
	replicas int
	rate     float64
	burst    int
	hour     time.Duration
	trip     time.Duration

	server *redispipe.Server
	houses []*house
	start  time.Time
	wg     sync.WaitGroup
	random *rand.Rand

	mu    sync.Mutex
	left  []exit // in order
	lines []int  // of all replicas together, each second
}

// A house is one replica.
type house struct {
	queue  *shaping.Queue
	client *redis.Client
	alive  context.Context
	die    context.CancelFunc

	mu    sync.Mutex
	conns []net.Conn
	dead  bool
}

// An exit is a departure.
type exit struct {
	at      time.Duration
	waited  time.Duration
	replica int
}

func TestTown(t *testing.T) {
	v := town{t: t, replicas: 10, rate: 30, burst: 3, hour: 24 * time.Second, trip: 2 * time.Millisecond}
	if n, err := strconv.Atoi(os.Getenv("WEIR_SCALE")); err == nil {
		v.replicas, v.rate, v.burst, v.hour = n, 0.3*float64(n), max(n*3/100, 1), time.Hour
	}
	if d, err := time.ParseDuration(os.Getenv("WEIR_SCALE_HOUR")); err == nil {
		v.hour = d
	}
	v.random = rand.New(rand.NewPCG(seeded(t), 2))
	synctest.Test(t, v.live)
}

func (v *town) live(t *testing.T) {
	v.t, v.server = t, redispipe.Start(t, v.trip)
	for i := range v.replicas {
		v.settle(i)
	}
	time.Sleep(time.Minute)
	v.start = time.Now()
	before := v.server.Calls()

	watching, stop := context.WithCancel(t.Context())
	v.wg.Go(func() { v.watch(watching) })
	for i := range v.houses {
		v.come(i)
	}
	third := v.hour / 3
	time.Sleep(third)
	quiet := v.server.Calls()
	calls := v.since(0, third)
	v.log("even callers at 0.9 of the rate", 0, third)
	t.Logf("scripts per call %.3f", float64(quiet-before)/float64(len(calls)))
	if most := 1.25; float64(quiet-before) > most*float64(len(calls)) {
		t.Errorf("%d scripts for %d calls, want %.2f a call at most", quiet-before, len(calls), most)
	}
	pause := max(third/20, 2*time.Second)
	v.pause(third, pause)
	time.Sleep(2*third - v.now())
	v.log("after the pause", third+pause, 2*third)
	v.saturate(2*third, 5*third/2)
	v.halve(5 * third / 2)
	stop()
	v.wg.Wait()
	v.bounded()
	t.Logf("%d calls, %d scripts, %.3f a call", len(v.left), v.server.Calls()-before, float64(v.server.Calls()-before)/float64(len(v.left)))
}

func (v *town) now() time.Duration { return time.Since(v.start) }

// settle opens one more replica, which calls once.
func (v *town) settle(i int) {
	h := &house{}
	h.alive, h.die = context.WithCancel(context.Background())
	opt := *v.server.Client(v.t).Options()
	dial := opt.Dialer
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return h.dial(dial(ctx, network, addr))
	}
	h.client = redis.NewClient(&opt)
	store := distributed.New(h.client, "town")
	store.Logger = slog.New(slog.DiscardHandler)
	l, err := store.Limiter("vendor", throttle.TokenBucket(int(v.rate), time.Second, v.burst))
	if err != nil {
		v.t.Fatal(err)
	}
	h.queue = shaping.NewQueue(l)
	v.houses = append(v.houses, h)
	v.t.Cleanup(func() {
		h.die()
		_ = store.Close()
		_ = h.client.Close()
	})
	if err := h.queue.Wait(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
}

// dial registers a connection, or closes it if the replica is dead.
func (h *house) dial(conn net.Conn, err error) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && h.dead {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	h.conns = append(h.conns, conn)
	return conn, err
}

// kill ends a replica as SIGKILL does: it sends no final flush.
func (h *house) kill() {
	h.mu.Lock()
	h.dead = true
	conns := h.conns
	h.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	h.die()
}

// come starts callers at a replica at the instants of a Poisson process.
func (v *town) come(i int) {
	random, perSecond := rand.New(rand.NewPCG(v.random.Uint64(), 3)), 0.9*v.rate/float64(v.replicas)
	v.wg.Go(func() {
		for {
			time.Sleep(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
			if v.now() >= 2*v.hour/3 {
				return
			}
			v.wg.Go(func() { v.call(i) })
		}
	})
}

// call waits for one turn, and reports whether it departed.
func (v *town) call(i int) bool {
	h, arrived := v.houses[i], time.Now()
	if err := h.queue.WaitTurn(h.alive, &shaping.Turn{N: 1}); err != nil {
		if h.alive.Err() == nil {
			v.t.Errorf("replica %d: %v", i, err)
		}
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = append(v.left, exit{v.now(), time.Since(arrived), i})
	return true
}

// watch records the length of the line each second.
func (v *town) watch(ctx context.Context) {
	for second := time.NewTicker(time.Second); ; {
		select {
		case <-second.C:
		case <-ctx.Done():
			second.Stop()
			return
		}
		n := 0
		for _, h := range v.houses {
			if h.alive.Err() == nil {
				n += h.queue.Waiting()
			}
		}
		v.mu.Lock()
		v.lines = append(v.lines, n)
		v.mu.Unlock()
	}
}

// since returns the departures between two times.
func (v *town) since(from, to time.Duration) []exit {
	v.mu.Lock()
	defer v.mu.Unlock()
	first, _ := slices.BinarySearchFunc(v.left, from, func(e exit, at time.Duration) int { return int(e.at - at) })
	last, _ := slices.BinarySearchFunc(v.left, to, func(e exit, at time.Duration) int { return int(e.at - at) })
	return slices.Clone(v.left[first:last])
}

// log logs rates, waits and lines between two times.
func (v *town) log(what string, from, to time.Duration) {
	exits := v.since(from, to)
	var waits []time.Duration
	for _, e := range exits {
		waits = append(waits, e.waited)
	}
	slices.Sort(waits)
	v.mu.Lock()
	lines := slices.Sorted(slices.Values(v.lines[min(int(from.Seconds()), len(v.lines)):min(int(to.Seconds()), len(v.lines))]))
	v.mu.Unlock()
	v.t.Logf("%s: %d calls, %.1f/s, waits %s; line p50 %d, p99 %d, max %d", what, len(exits), float64(len(exits))/(to-from).Seconds(),
		quantiles(waits), lines[len(lines)/2], lines[len(lines)*99/100], lines[len(lines)-1])
}

// pause applies a vendor's pause at one replica. All replicas stop within two one-way trips, and
// continue at the rate when it ends.
func (v *town) pause(at, d time.Duration) {
	v.houses[v.random.IntN(v.replicas)].queue.Pause(d)
	busy := min(10*time.Second, 2*d) // while there is a line
	time.Sleep(d + busy)
	during := v.since(at, at+d)
	last := time.Duration(0)
	if len(during) > 0 {
		last = during[len(during)-1].at - at
	}
	after := v.since(at+d, at+d+busy)
	v.t.Logf("a pause of %v: %d departed within %v of its start, the first %v after its end, %d in the %v after it", d, len(during), last, after[0].at-at-d, len(after), busy)
	if last > 3*v.trip {
		v.t.Errorf("a call departed %v after one replica applied the pause, want %v at most", last, 3*v.trip)
	}
	if want := 0.95 * busy.Seconds() * v.rate; float64(len(after)) < want {
		v.t.Errorf("%d departed in the %v after the pause, want %.0f", len(after), busy, want)
	}
}

// saturate has callers call again as soon as they have departed: one caller at every second
// replica, four at the others.
func (v *town) saturate(at, to time.Duration) {
	for i, h := range v.houses {
		for range 1 + 3*(i%2) {
			v.wg.Go(func() {
				for v.now() < v.hour && h.alive.Err() == nil && v.call(i) {
				}
			})
		}
	}
	time.Sleep(to - v.now())
	from := at + (to-at)/2 // until what was in line has gone
	v.log("saturated", from, to)
	var shares [2][]float64
	counts := make(map[int]float64)
	for _, e := range v.since(from, to) {
		counts[e.replica]++
	}
	for i := range v.houses {
		shares[i%2] = append(shares[i%2], counts[i])
	}
	one, four := jain(shares[0]), jain(shares[1])
	v.t.Logf("Jain's index among those with one caller %.4f, with four %.4f, of all %.4f", one, four, jain(slices.Concat(shares[0], shares[1])))
	if one < 0.9 || four < 0.9 {
		v.t.Errorf("Jain's index is %.3f and %.3f, want 0.9 among equals", one, four)
	}
}

// halve kills half of the replicas. Permits in their hands are lost, and then the others get the
// whole rate.
func (v *town) halve(at time.Duration) {
	for _, i := range v.random.Perm(v.replicas)[:v.replicas/2] {
		v.houses[i].kill()
	}
	time.Sleep(v.hour - v.now())
	v.log("half of them dead", at, v.hour)
	lost := v.rate*(v.hour-at).Seconds() - float64(len(v.since(at, v.hour)))
	settled, step := at, (v.hour-at)/16
	for from := at; from < v.hour; from += step {
		if n := float64(len(v.since(from, from+step))); n < 0.9*v.rate*step.Seconds()-1 {
			settled = from + step
		}
	}
	v.t.Logf("half of them dead: %.0f departures fewer than the rate, which is there again after %v at most", lost, settled-at)
	if most := float64(v.replicas/2+v.burst) + 0.02*v.rate*(v.hour-at).Seconds(); lost > most {
		v.t.Errorf("%.0f departures were lost with %d replicas, want %.0f at most", lost, v.replicas/2, most)
	}
}

// bounded tests every window of departures against the rate for the window and tolerance, plus the
// burst.
func (v *town) bounded() {
	most := float64(v.burst) + v.rate*throttle.Tolerance(throttle.TokenBucket(int(v.rate), time.Second, v.burst)).Seconds() + 1e-6
	level, last, worst := 0.0, time.Duration(0), 0.0
	for _, e := range v.left {
		level = max(level-v.rate*(e.at-last).Seconds(), 0) + 1
		last, worst = e.at, max(worst, level)
	}
	v.t.Logf("at most %.2f over the rate in any window, of %.2f", worst, most)
	if worst > most {
		v.t.Errorf("%.2f departures over the rate in a window, want %.2f at most", worst, most)
	}
}
