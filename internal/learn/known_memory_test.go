package learn_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A course of calls, one after the other, to a bucket.
type course struct {
	served, refused int
	at              []throttle.Instant // served
}

// run sends calls to a bucket of a burst of five for a number of seconds, or of calls, and returns
// their outcome and the resulting state.
func run(s learn.State, rate, seconds float64, calls int) (learn.State, course) {
	return runFrom(s, 0, burst, rate, seconds, calls)
}

const burst = 5

// runFrom is run from a second on, at which the bucket holds that many tokens.
func runFrom(s learn.State, from, tokens, rate, seconds float64, calls int) (learn.State, course) {
	left, granted := at(from), s.Last.Ordinal
	last := left
	var c course
	for left < at(from+seconds) && c.served+c.refused < calls {
		granted++
		f := learn.Fact{Departed: left, Landed: left.Add(5 * time.Millisecond), Ordinal: granted, Granted: granted, Flying: 1, Waited: true}
		tokens = min(burst, tokens+rate*left.Sub(last).Seconds())
		last = left
		if f.Refused = tokens < 1; f.Refused {
			c.refused++
		} else {
			tokens--
			c.served++
			c.at = append(c.at, left)
		}
		s = feed(s, f)
		p := s.Plan(f.Landed, granted)
		next := f.Landed
		if p.Rate > 0 {
			next = max(next, left.Add(time.Duration(1e9/p.Rate)))
		}
		left = max(next, p.Hold)
	}
	return s, c
}

// after returns how many were served from a second on.
func (c course) after(second, seconds float64) (n int) {
	for _, t := range c.at {
		if t >= at(second) && t < at(second+seconds) {
			n++
		}
	}
	return n
}

// remember returns a new state with the memory, through its JSON.
func remember(t *testing.T, m learn.Memory) learn.State {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back learn.Memory
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if err := back.Validate(); err != nil {
		t.Fatalf("memory %s: %v", text, err)
	}
	s := learn.New(learn.Setting{})
	s.Import(back)
	return s
}

// fifty is the memory of 50/s.
func fifty(t *testing.T) learn.Memory {
	t.Helper()
	s, _ := run(learn.New(learn.Setting{}), 50, 60, 1e6)
	m, ok := s.Export()
	if !ok || math.Abs(m.Rate-50) > 2.5 {
		t.Fatalf("Export of a lane of 50/s = %+v, %v", m, ok)
	}
	return m
}

func TestRememberedRateHoldsFromTheFirstSecond(t *testing.T) {
	_, c := run(remember(t, fifty(t)), 50, 60, 500)
	if n := c.after(0, 1); n < 48 || n > 56 {
		t.Errorf("%d served in the first second, want 50 and the burst", n)
	}
	if c.refused > 5 {
		t.Errorf("%d of 500 refused, want 5 at most", c.refused)
	}
}

func TestLyingMemoryHeals(t *testing.T) {
	for _, lie := range []float64{10, 0.1} {
		m := fifty(t)
		m.Rate *= lie
		s, c := run(remember(t, m), 50, 40, 1e6)
		if n := c.after(30, 10); n < 450 {
			t.Errorf("of %v times the rate: %d served in ten seconds after thirty, want 450; %v", lie, n, &s)
		}
		if lie < 1 {
			continue
		}
		if c.refused > 100 {
			t.Errorf("of %v times the rate: %d refused, want 100 at most", lie, c.refused)
		}
	}
}

func TestCallsInFlightAreRemembered(t *testing.T) {
	s := learn.State{Mode: learn.Flight, Places: learn.Places{Ceil: 16, Cap: 3}}
	m, ok := s.Export()
	if !ok {
		t.Fatal("nothing is exported")
	}
	s = remember(t, m)
	if p := s.Plan(at(1), 0); p.Most != 16 || p.Rate != 0 {
		t.Errorf("plan = %+v, want 16 in flight", p)
	}
	beside := learn.New(learn.Setting{Configured: learn.AnyRate})
	beside.Import(m)
	if p := beside.Plan(at(1), 0); p.Most != 16 {
		t.Errorf("beside limits that name no rate, plan = %+v, want 16 in flight", p)
	}
}

func TestNewLaneExportsNothing(t *testing.T) {
	s, _ := run(learn.New(learn.Setting{}), 50, 0.05, 1e6)
	if m, ok := s.Export(); ok {
		t.Errorf("Export of a new lane = %+v, want nothing", m)
	}
}

// A memory never exceeds the configured limit, and a lower configured limit is not affected.
func TestMemoryNeverExceedsTheConfiguredRate(t *testing.T) {
	m := learn.Memory{Version: 1, Rate: 50, Width: 0.02}
	for configured, want := range map[float64]float64{30: 0, 80: 50} {
		s := learn.New(learn.Setting{Configured: configured, Burst: 1})
		s.Import(m)
		if p := s.Plan(at(1), 0); p.Rate != want {
			t.Errorf("rate remembered of 50/s beside %v/s configured = %v, want %v", configured, p.Rate, want)
		}
	}
}

func TestGarbageIsNoMemory(t *testing.T) {
	good := learn.Memory{Version: 1, Rate: 50, Width: 0.02}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*learn.Memory){
		"another version":  func(m *learn.Memory) { m.Version = 2 },
		"no version":       func(m *learn.Memory) { m.Version = 0 },
		"nothing":          func(m *learn.Memory) { m.Rate = 0 },
		"both":             func(m *learn.Memory) { m.InFlight = 4 },
		"a negative rate":  func(m *learn.Memory) { m.Rate = -1 },
		"no number":        func(m *learn.Memory) { m.Rate = math.NaN() },
		"an endless rate":  func(m *learn.Memory) { m.Rate = math.Inf(1) },
		"a vast period":    func(m *learn.Memory) { m.Period = 1e12 },
		"a vast width":     func(m *learn.Memory) { m.Width = 3 },
		"a negative bound": func(m *learn.Memory) { m.Rate, m.InFlight = 0, -5 },
	} {
		m := good
		if spoil(&m); m.Validate() == nil {
			t.Errorf("%s is a memory: %+v", name, m)
		}
	}
}
