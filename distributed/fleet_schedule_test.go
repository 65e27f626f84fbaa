package distributed_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/redistest"
)

// A mishap is one fault of a schedule: its kind, connections, start and duration.
type mishap struct {
	kind  string
	ways  []int
	after time.Duration
	lasts time.Duration
}

func (m mishap) String() string {
	return fmt.Sprintf("%s of %v from %v for %v", m.kind, m.ways, m.after.Round(time.Millisecond), m.lasts.Round(time.Millisecond))
}

// mishaps are the possible faults; each returns a function that heals it.
var mishaps = map[string]func(f *fleet, m mishap) (heal func()){
	"refuse":  onWays(gone),
	"swallow": onWays((*redistest.Proxy).Swallow),
	"hole": onWays(func(p *redistest.Proxy) {
		p.BlackHoleSYN()
		p.Drop()
	}),
	"slow": func(f *fleet, m mishap) func() {
		return onWays(func(p *redistest.Proxy) { p.Delay(m.lasts / 5) })(f, m)
	},
	"cut": onWays(func(p *redistest.Proxy) { p.Cut(500, redistest.RST) }),
	"flap": func(f *fleet, m mishap) func() {
		return onWays(func(p *redistest.Proxy) { p.Flap(f.seed, 100*time.Millisecond) })(f, m)
	},
	"stop": func(f *fleet, _ mishap) func() {
		f.server.Stop()
		return f.server.Continue
	},
	"kill": func(f *fleet, _ mishap) func() {
		f.server.Kill()
		return func() { f.server.Restart() }
	},
	"flush":        once("FLUSHALL"),
	"script flush": once("SCRIPT", "FLUSH"),
	"garbage":      once("SET", laneKey, "text"),
	"memory": func(f *fleet, _ mishap) func() {
		f.try("CONFIG", "SET", "maxmemory", "1")
		return func() { f.try("CONFIG", "SET", "maxmemory", "0") }
	},
	"kill of a replica": onProcess(func(p *process) func() {
		p.Kill()
		return p.Restart
	}),
	"stop of a replica": onProcess(func(p *process) func() {
		p.Stop()
		return p.Continue
	}),
	"step":                stepped, // only for a skewed fleet
	"freeze of a replica": onProcess(func(p *process) func() { return p.Freeze(80*time.Millisecond, 100*time.Millisecond) }),
}

// The place of a mishap: connections to Redis, a replica, or else Redis itself. After some faults
// Redis has lost state.
var (
	mishapsOnWays     = []string{"refuse", "swallow", "hole", "slow", "cut", "flap"}
	mishapsOfReplicas = []string{"kill of a replica", "stop of a replica", "freeze of a replica"}
	forgetful         = []string{"kill", "flush", "garbage"}
)

func once(command ...string) func(f *fleet, m mishap) func() {
	return func(f *fleet, _ mishap) func() {
		f.try(command...)
		return func() {}
	}
}

func onProcess(fault func(p *process) func()) func(f *fleet, m mishap) func() {
	return func(f *fleet, m mishap) func() { return fault(f.processes[m.ways[0]%len(f.processes)]) }
}

func onWays(fault func(p *redistest.Proxy)) func(f *fleet, m mishap) func() {
	return func(f *fleet, m mishap) func() {
		for _, i := range m.ways {
			fault(f.links[i])
		}
		return func() {
			for _, i := range m.ways {
				f.links[i].Pass()
				f.links[i].Drop()
			}
		}
	}
}

// try runs a command, ignoring errors of a server that is down.
func (f *fleet) try(args ...string) { _, _ = f.server.Do(args...) }

// Two or three random faults, which may overlap, are applied to a fleet.
func TestRandomFaultsStayWithinTheBound(t *testing.T) {
	t.Parallel()
	rounds := orShort(4, 2)
	if long {
		rounds = 40
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			testSchedule(t)
		})
	}
}

func testSchedule(t *testing.T) {
	t.Helper()
	f := newFleet(t, plan{members: 2, processes: 2})
	f.steady()
	spells := f.undergo(f.schedule())
	f.pass(moment / 2)
	f.judge(spells...)
}

// undergo applies a schedule to the fleet, and returns when it has recovered, with what the vendor
// may see because of it.
func (f *fleet) undergo(schedule []mishap) []spell {
	f.t.Helper()
	f.t.Logf("%v", schedule)
	from := now()
	var all sync.WaitGroup
	one := make(chan struct{}, 1) // faults of the server run one after the other
	for _, m := range schedule {
		all.Go(func() {
			time.Sleep(m.after)
			if len(m.ways) == 0 {
				one <- struct{}{}
				defer func() { <-one }()
			}
			heal := mishaps[m.kind](f, m)
			time.Sleep(m.lasts)
			heal()
		})
	}
	all.Wait()
	f.pass(moment / 2)
	each(f.links, func(p *redistest.Proxy) {
		p.Pass()
		p.Drop()
	})()
	back := f.back()
	spells := []spell{f.cutOff(f.replicas(), from, back)}
	for _, m := range schedule {
		if slices.Contains(forgetful, m.kind) {
			spells = append(spells, f.lost(from.Add(m.after), back))
		}
		if m.kind == "step" { // ahead, and finally ahead again if it was back
			spells = append(spells, f.movedOn(from.Add(m.after), back))
		}
	}
	return spells
}

// schedule draws two or three mishaps, at most one of them of a replica.
func (f *fleet) schedule() []mishap {
	kinds := slices.Sorted(maps.Keys(mishaps)) // the same seed, the same schedule
	if !f.plan.Skewed {
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "step" })
	}
	all := make([]mishap, 2+f.random.IntN(2))
	for i := range all {
		m := mishap{
			kind:  kinds[f.random.IntN(len(kinds))],
			after: time.Duration(f.random.Int64N(int64(2 * moment))),
			lasts: moment/7 + time.Duration(f.random.Int64N(int64(2*moment))),
		}
		if slices.Contains(mishapsOfReplicas, m.kind) {
			m.ways = []int{f.random.IntN(len(f.links))}
			kinds = slices.DeleteFunc(kinds, func(k string) bool { return slices.Contains(mishapsOfReplicas, k) })
		}
		if slices.Contains(mishapsOnWays, m.kind) {
			m.ways = f.random.Perm(len(f.links))[:1+f.random.IntN(len(f.links))]
		}
		all[i] = m
	}
	return all
}
