package distributed_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A stripe is a part of one quota in a Redis of its own, with its part of the rate and burst. All
// stripes together allow no more than one quota would. Each replica has a queue for each stripe.
// The figures of STRIPES.md:
//
//	WEIR_SCALE=200 go test -run TestStripes -timeout 1h -v ./distributed
type striped struct {
	t        *testing.T
	replicas int
	stripes  int
	rate     int // of all stripes, per second
	burst    int
	choose   func(queues []*shaping.Queue, replica int, random *rand.Rand) int
	least    float64                             // least share of arrivals that must depart
	demand   func(replica, replicas int) float64 // a replica's share of the rate; nil: workers in a loop

	servers []*redispipe.Server
	queues  [][]*shaping.Queue // by replica, by stripe
	start   time.Time
	wg      sync.WaitGroup
	random  *rand.Rand
	alive   context.Context

	came atomic.Int64
	mu   sync.Mutex
	left []exit
}

// home makes a replica use one stripe only.
func home(queues []*shaping.Queue, replica int, _ *rand.Rand) int { return replica % len(queues) }

// shorter uses the home stripe unless callers wait there and fewer wait at another, chosen at
// random.
func shorter(queues []*shaping.Queue, replica int, random *rand.Rand) int {
	at := home(queues, replica, random)
	if n := queues[at].Waiting(); n > 0 {
		if other := random.IntN(len(queues)); queues[other].Waiting() < n {
			return other
		}
	}
	return at
}

// evenly gives all replicas the same demand, and unevenly gives one of them four fifths.
func evenly(_, replicas int) float64 { return 0.9 / float64(replicas) }

func unevenly(replica, replicas int) float64 {
	if replica == 0 {
		return 0.9 * 0.8
	}
	return 0.9 * 0.2 / float64(replicas-1)
}

func TestStripes(t *testing.T) {
	type choice struct {
		name   string
		choose func([]*shaping.Queue, int, *rand.Rand) int
		least  float64
	}
	replicas, rate, live := 12, 60, 8*time.Second
	counts, ways := []int{3}, []choice{{"shorter", shorter, 0.85}}
	if n, err := strconv.Atoi(os.Getenv("WEIR_SCALE")); err == nil {
		replicas, rate, live = n, 2*n, time.Minute
		counts, ways = []int{1, 4, 16}, append(ways, choice{"home", home, 0})
	}
	for _, stripes := range counts {
		for _, way := range ways {
			for _, wish := range []struct {
				name   string
				demand func(int, int) float64
			}{{"even", evenly}, {"skewed", unevenly}, {"saturated", nil}} {
				if testing.Short() && wish.demand != nil {
					continue // callers in a loop use the same code more
				}
				t.Run(fmt.Sprintf("%d stripes, %s, %s", stripes, way.name, wish.name), func(t *testing.T) {
					s := &striped{replicas: replicas, stripes: stripes, rate: rate, burst: rate, choose: way.choose, least: way.least, demand: wish.demand}
					s.random = rand.New(rand.NewPCG(seeded(t), 4))
					synctest.Test(t, func(t *testing.T) { s.live(t, live) })
				})
			}
		}
	}
}

func (s *striped) live(t *testing.T, d time.Duration) {
	s.t = t
	alive, stop := context.WithCancel(t.Context())
	s.alive = alive
	for range s.stripes {
		s.servers = append(s.servers, redispipe.Start(t, 2*time.Millisecond))
	}
	for range s.replicas {
		s.queues = append(s.queues, s.settle())
	}
	time.Sleep(time.Minute)
	s.start = time.Now()
	before := s.calls()
	for i := range s.replicas {
		s.come(i, rand.New(rand.NewPCG(s.random.Uint64(), 5)))
	}
	time.Sleep(d)
	after := s.calls()
	stop()
	s.wg.Wait()
	s.judge(d, before, after)
}

// settle opens one more replica, which calls once in each stripe.
func (s *striped) settle() []*shaping.Queue {
	var queues []*shaping.Queue
	for _, server := range s.servers {
		store := distributed.New(server.Client(s.t), "striped")
		store.Logger = slog.New(slog.DiscardHandler)
		l, err := store.Limiter("vendor", s.limit())
		if err != nil {
			s.t.Fatal(err)
		}
		queue := shaping.NewQueue(l)
		queue.MaxWaiting = 1 << 20
		s.t.Cleanup(func() { _ = store.Close() })
		if err := queue.Wait(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		queues = append(queues, queue)
	}
	return queues
}

// limit returns one stripe's part of the quota.
func (s *striped) limit() throttle.Limit {
	return throttle.TokenBucket(s.rate, time.Duration(s.stripes)*time.Second, s.burst/s.stripes)
}

func (s *striped) calls() []int {
	var calls []int
	for _, server := range s.servers {
		calls = append(calls, server.Calls())
	}
	return calls
}

// come starts callers at a replica: at the instants of a Poisson process, or four that call again
// as soon as they have departed.
func (s *striped) come(replica int, random *rand.Rand) {
	if s.demand == nil {
		for range 4 {
			random := rand.New(rand.NewPCG(random.Uint64(), 6))
			s.wg.Go(func() {
				for s.call(replica, s.choose(s.queues[replica], replica, random)) {
				}
			})
		}
		return
	}
	perSecond := float64(s.rate) * s.demand(replica, s.replicas)
	s.wg.Go(func() {
		for s.alive.Err() == nil {
			time.Sleep(time.Duration(random.ExpFloat64() / perSecond * float64(time.Second)))
			stripe := s.choose(s.queues[replica], replica, random)
			s.wg.Go(func() { s.call(replica, stripe) })
		}
	})
}

// call waits for one turn in a stripe, and reports whether it departed.
func (s *striped) call(replica, stripe int) bool {
	s.came.Add(1)
	arrived := time.Now()
	if err := s.queues[replica][stripe].Wait(s.alive); err != nil {
		if s.alive.Err() == nil {
			s.t.Errorf("replica %d, stripe %d: %v", replica, stripe, err)
		}
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, exit{time.Since(s.start), time.Since(arrived), replica})
	return true
}

// judge logs throughput and waits. It fails if a window has more departures than one quota allows,
// or if fewer departed than expected.
func (s *striped) judge(d time.Duration, before, after []int) {
	most := float64(s.stripes*(s.burst/s.stripes)) + float64(s.rate)*throttle.Tolerance(s.limit()).Seconds() + 1e-6
	level, last, worst := 0.0, time.Duration(0), 0.0
	var waits []time.Duration
	counts, second := make([]float64, s.replicas), 0
	for _, e := range s.left {
		level = max(level-float64(s.rate)*(e.at-last).Seconds(), 0) + 1
		last, worst = e.at, max(worst, level)
		if e.at > d/2 {
			second++
			waits = append(waits, e.waited)
			counts[e.replica]++
		}
	}
	slices.Sort(waits)
	all, busiest := 0, 0
	for i := range after {
		all, busiest = all+after[i]-before[i], max(busiest, after[i]-before[i])
	}
	used := float64(second) / (float64(s.rate) * (d / 2).Seconds())
	n := float64(len(s.left))
	s.t.Logf("%.3f of the rate, waits %s; scripts a call %.3f, at the busiest stripe %.3f; Jain's index %.3f; at most %.1f over the rate, of %.1f",
		used, quantiles(waits), float64(all)/n, float64(busiest)/n, jain(counts), worst, most)
	if worst > most {
		s.t.Errorf("%.2f departures over the rate in a window, want %.2f at most", worst, most)
	}
	if s.demand == nil && used < 0.98 {
		s.t.Errorf("%.3f of the rate departed while all stripes were wanted, want 0.98", used)
	}
	if came := float64(s.came.Load()); s.demand != nil && n < s.least*came {
		s.t.Errorf("%.0f of %.0f arrivals departed, want %.2f of them", n, came, s.least)
	}
}
