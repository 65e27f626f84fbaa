package distributed_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/throttle"
)

// Three fleets meet one fault after another. They stay within the bound, recover each time, and
// leak no memory and no descriptor. The long form:
//
//	WEIR_FAULTS=30m go test -run TestFaultAfterFault -timeout 1h -v ./distributed
func TestFaultAfterFault(t *testing.T) {
	t.Parallel()
	life, _ := time.ParseDuration(os.Getenv("WEIR_FAULTS")) // zero: one round
	bucket := throttle.TokenBucket(rate, time.Second, burst)
	for name, c := range map[string]config{
		"paced":      {Limits: []throttle.Limit{bucket}},
		"prefetched": {Limits: []throttle.Limit{bucket}, Prefetch: 25 * time.Millisecond},
		"closed":     {Limits: []throttle.Limit{throttle.SlidingLog(rate/4, time.Second/4)}, OnLoss: distributed.FailClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Skewed = true
			f := newFleet(t, plan{members: 2, processes: 2, config: c})
			var kept []remains
			for end := time.Now().Add(life); ; {
				f.steady()
				spells := f.undergo(f.schedule())
				f.pass(moment / 2)
				f.verdict(spells...)
				f.journal.forget()
				kept = append(kept, f.remains())
				if time.Now().After(end) || t.Failed() {
					break
				}
			}
			judgeRemains(t, kept)
		})
	}
}

// forget clears the journal.
func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = nil
}

// stepped steps the clock of Redis for all replicas, by ten seconds to an hour, and finally back.
func stepped(f *fleet, _ mishap) func() {
	by := []time.Duration{10 * time.Second, time.Minute, time.Hour}[f.random.IntN(3)]
	if f.random.IntN(2) == 0 {
		by = -by
	}
	f.t.Logf("the clock is stepped by %v", by)
	f.step(by)
	return func() { f.step(0) }
}

func (f *fleet) step(by time.Duration) {
	to := strconv.FormatInt(by.Microseconds(), 10)
	for _, r := range f.members {
		r.step(to)
	}
	for _, p := range f.processes {
		p.step(to)
	}
}

// movedOn returns what the vendor may see if the clock of Redis jumped ahead between two instants:
// one more burst, and the permits in hand.
func (f *fleet) movedOn(from, to throttle.Instant) spell {
	limit, n := f.plan.Limits[0], f.replicas()
	run := min(f.plan.Callers/2, int(rateOf(limit)*distributed.DefaultHorizon.Seconds()))
	return spell{from: from, to: to, more: float64(burstOf(limit) + n*max(run, 1))}
}

// remains are what a fleet holds after a round: bytes and goroutines of this process, and
// descriptors of all.
type remains struct {
	heap, goroutines, descriptors int
}

func (r remains) String() string {
	return fmt.Sprintf("%d KiB, %d goroutines, %d descriptors", r.heap>>10, r.goroutines, r.descriptors)
}

func (f *fleet) remains() remains {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := remains{int(m.HeapAlloc), runtime.NumGoroutine(), descriptors(os.Getpid())}
	for _, p := range f.processes {
		r.descriptors += descriptors(p.life().cmd.Process.Pid)
	}
	return r
}

// descriptors returns how many a process has open; zero if there is no /proc.
func descriptors(pid int) int {
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(all)
}

// judgeRemains fails the test if the last third of a long run holds more than the second.
func judgeRemains(t *testing.T, kept []remains) {
	t.Helper()
	third := len(kept) / 3
	t.Logf("%d rounds; at the end %v", len(kept), kept[len(kept)-1])
	if third < 10 {
		return
	}
	second, last := typical(kept[third:2*third]), typical(kept[2*third:])
	t.Logf("typical of the first third %v, of the second %v, of the last %v", typical(kept[:third]), second, last)
	if last.heap > second.heap*5/4+1<<20 || last.goroutines > second.goroutines+10 || last.descriptors > second.descriptors+10 {
		t.Errorf("%v in the last third of %d rounds, %v in the second", last, len(kept), second)
	}
}

// typical returns the median of each field.
func typical(of []remains) remains {
	middle := func(what func(remains) int) int {
		var all []int
		for _, r := range of {
			all = append(all, what(r))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return remains{
		middle(func(r remains) int { return r.heap }),
		middle(func(r remains) int { return r.goroutines }),
		middle(func(r remains) int { return r.descriptors }),
	}
}
