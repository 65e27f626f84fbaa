package learn_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// learned returns a state after refusals and reported quotas.
func learned() learn.State {
	s := learn.New(learn.Setting{})
	for n := range int64(300) {
		f := fact(n + 1)
		f.Refused = n%17 == 16
		f.Quotas = []learn.Quota{{Name: "day", Limit: 20, HasLimit: true, Remaining: float64(20 - n%17), HasRemaining: true, Reset: time.Second, HasReset: true}}
		s = feed(s, f)
	}
	return s
}

func TestStateTravels(t *testing.T) {
	refused, f := learn.New(learn.Setting{}), fact(1)
	f.Refused, f.Until = true, f.Landed.Add(time.Second)
	refused = feed(refused, f)
	if refused.Mode != learn.Rate || refused.R > 0 {
		t.Fatalf("the first call was refused, and the state is %v", &refused)
	}
	for name, want := range map[string]learn.State{"new": learn.New(learn.Setting{}), "learned": learned(), "first refused": refused} {
		b := want.Encode()
		if len(b) > 3000 {
			t.Errorf("%s: the state takes %d bytes", name, len(b))
		}
		var got learn.State
		if err := got.Decode(b); err != nil || got != want {
			t.Errorf("%s: read %v (%v), want %v", name, &got, err, &want)
		}
	}
}

// Replicas of two versions continue with each other's states, although each has fields unknown to
// the other.
func TestStateOfAnotherVersionTravels(t *testing.T) {
	want := learned()
	b := bytes.Replace(want.Encode(), []byte(`"Doubt":`), []byte(`"Unknown":{"Of":[1,2]},"Doubted":`), 1)
	var got learn.State
	if err := got.Decode(b); err != nil {
		t.Fatal(err)
	}
	if want.Doubt = 0; got != want {
		t.Errorf("read %v, want %v", &got, &want)
	}
	known := learn.New(learn.Setting{})
	known.Receive([]byte(`{"unknown":{"of":1}}{"fact":{"Departed":1,"Landed":2,"Flying":1,"Unknown":3},"unknown":true}`), 1, 2)
	if known.RTT == 0 {
		t.Error("a fact with an unknown field was not observed")
	}
}

func TestStateThatMakesNoSenseIsNotRead(t *testing.T) {
	s := learned()
	good := s.Encode()
	for name, b := range map[string][]byte{
		"nothing": nil, "half": good[:len(good)/2], "more": append(append([]byte{}, good...), '0'),
		"another version": bytes.Replace(good, []byte(`{"Version":1`), []byte(`{"Version":99`), 1),
		"no version":      []byte("{}"), "more ceilings than there are": bytes.Replace(good, []byte(`"Ceilings":[`), []byte(`"Ceilings":[{},{},{},{},{},{},`), 1),
		"a number too great": bytes.Replace(good, []byte(`"Doubt":0`), []byte(`"Doubt":1e999`), 1),
		"too long":           append(bytes.Repeat([]byte(" "), 32<<10), good...),
	} {
		kept := learned()
		if err := kept.Decode(b); err == nil || kept != learned() {
			t.Errorf("%s: error %v, and the state is %v", name, err, &kept)
		}
	}
	for name, spoil := range map[string]func(*learn.State){
		"mode": func(s *learn.State) { s.Mode = 9 }, "rate": func(s *learn.State) { s.Mode, s.R = learn.Rate, 0 },
		"search": func(s *learn.State) { s.X = -1 }, "round trip": func(s *learn.State) { s.RTT = math.Inf(1) },
		"block": func(s *learn.State) { s.Block = 1e9 }, "burst": func(s *learn.State) { s.Burst = math.Inf(1) },
		"estimate": func(s *learn.State) { s.Mode, s.Episode, s.R, s.W = learn.Rate, false, 1, 0 }, "turns": func(s *learn.State) { s.Ceilings[0].Turns = -1 },
		"many turns": func(s *learn.State) { s.Ceilings[0].Turns = 9 },
	} {
		s := learned()
		spoil(&s)
		if err := new(learn.State).Decode(s.Encode()); err == nil {
			t.Errorf("%s: a state that makes no sense was read", name)
		}
	}
}

// Processes that receive the same messages in one order have equal states, also one that starts
// from another's state in between.
func TestSameMessagesMakeTheSameState(t *testing.T) {
	first, second := learn.New(learn.Setting{}), learn.New(learn.Setting{})
	third := learn.State{}
	met := learn.Meeting{Took: 5 * time.Millisecond, First: at(0), Pace: [2]throttle.Instant{at(0), at(0.1)}, Back: [2]int64{10, 1}, Cap: 8}
	messages := learn.Message{Meeting: &met}.Append(nil)
	for n := range int64(400) {
		f := fact(n + 1)
		f.Refused, f.Until = n%40 == 39, 0
		f.Quotas = []learn.Quota{{Name: "x", Limit: 90, HasLimit: true, Remaining: float64(90 - n%40), HasRemaining: true}}
		messages = learn.Message{Fact: &f}.Append(messages)
		if n%7 != 0 {
			continue
		}
		later := f.Landed.Add(30 * time.Millisecond)
		first.Receive(messages, f.Ordinal+3, later)
		second.Receive(messages, f.Ordinal+3, later)
		if n > 200 && third == (learn.State{}) {
			if err := third.Decode(first.Encode()); err != nil {
				t.Fatal(err)
			}
		} else if n > 200 {
			third.Receive(messages, f.Ordinal+3, later)
		}
		messages = messages[:0]
	}
	if first != second || first != third || first.Mode == learn.Start {
		t.Errorf("they know %v, %v and %v", &first, &second, &third)
	}
}

// The facts arrive as observed.
func TestReceivedFactsAreObserved(t *testing.T) {
	want, got := learn.New(learn.Setting{}), learn.New(learn.Setting{})
	for n := range int64(200) {
		f := fact(n + 1)
		if f.Refused = n%50 == 49; f.Refused {
			f.Until = f.Landed.Add(time.Second)
		}
		f.Granted = f.Ordinal + 2
		f.Quotas = []learn.Quota{{Name: "n", Unit: "requests", Limit: 60, HasLimit: true, Remaining: float64(60 - n%50), HasRemaining: true, Reset: time.Minute, HasReset: true, Window: time.Minute, HasWindow: true}}
		want.Observe(&f, f.Landed)
		got.Receive(learn.Message{Fact: &f}.Append(nil), f.Granted, f.Landed)
	}
	if got != want {
		t.Errorf("received %v, want %v", &got, &want)
	}
}

// A call from before joint learning is refused: the first such call is the lane's latest, the
// others are old.
func TestCallsOfBeforeAreOldNews(t *testing.T) {
	s := learn.New(learn.Setting{})
	met := learn.Meeting{Took: 5 * time.Millisecond, First: at(0), Pace: [2]throttle.Instant{at(0), at(0.1)}, Back: [2]int64{30, 0}}
	f := fact(0)
	f.Departed, f.Landed, f.Refused, f.Flying = at(0.2), at(0.21), true, 8
	messages := learn.Message{Fact: &f}.Append(learn.Message{Meeting: &met}.Append(nil))
	s.Receive(messages, 40, at(0.21))
	if s.Cut != 40 || s.Mode == learn.Start {
		t.Fatalf("after the first refusal: %v, cut %d", &s, s.Cut)
	}
	before := s
	s.Receive(messages, 47, at(0.22))
	if s.Cut != before.Cut || s.Mode != before.Mode || s.R != before.R {
		t.Errorf("an old refusal changed %v to %v", &before, &s)
	}
}

// A process whose first call is refused knows no earlier calls. Those were not slow.
func TestMeetingOfARefusedFirstCallSlowsNothing(t *testing.T) {
	s := learn.New(learn.Setting{Configured: 100, Burst: 10, Shared: true})
	met := learn.Meeting{Took: 5 * time.Millisecond, First: at(0.2), Back: [2]int64{40, 40}}
	f := fact(0)
	f.Departed, f.Landed, f.Refused, f.Flying = at(0.2), at(0.21), true, 8
	s.Receive(learn.Message{Fact: &f}.Append(learn.Message{Meeting: &met}.Append(nil)), 40, at(0.21))
	if hold := s.Plan(at(0.21), 40).Hold; !s.Episode || s.RefR < 50 || hold > at(0.3) {
		t.Fatalf("refused at %g/s, no departure for %v: %v", s.RefR, hold.Sub(at(0.21)), &s)
	}
	f = fact(41)
	f.Departed, f.Landed = at(0.25), at(0.26)
	s.Receive(learn.Message{Fact: &f}.Append(nil), 41, at(0.26))
	if hold := s.Plan(at(0.26), 41).Hold; s.Episode || hold > at(0.3) {
		t.Errorf("a call was served, and no departure for %v: %v", hold.Sub(at(0.26)), &s)
	}
}

// A call that the store did not count, as in an outage, reports what was left then, but not at
// which departure.
func TestUncountedCallsReadNoLevel(t *testing.T) {
	s := learn.New(learn.Setting{})
	receive := func(ordinal, granted int64) {
		f := learn.Fact{Ordinal: ordinal, Departed: at(float64(granted) / 100), Flying: 1, Waited: true}
		f.Landed, f.Refused = f.Departed.Add(5*time.Millisecond), granted == 20
		f.Quotas = []learn.Quota{{Name: "bucket", Limit: 100, HasLimit: true, Remaining: 80, HasRemaining: true, Reset: 200 * time.Millisecond, HasReset: true}}
		s.Receive(learn.Message{Fact: &f}.Append(nil), granted, f.Landed)
	}
	for n := range int64(600) {
		receive(n+1, n+1)
	}
	if level := s.Ceilings[0].V; s.Cut == 0 || level != 680 {
		t.Fatalf("before the outage the quota runs out at departure %g, want 680: %v", level, &s)
	}
	for n := range int64(4) {
		receive(0, 601+n)
	}
	if level := s.Ceilings[0].V; level < 680 {
		t.Errorf("the quota runs out at departure %g, want 680 or later", level)
	}
}

func TestForgetAndMemoryTravel(t *testing.T) {
	s := learned()
	s.Receive(learn.Message{Forget: true}.Append(nil), 300, at(4))
	if s != learn.New(learn.Setting{}) {
		t.Errorf("after forgetting: %v", &s)
	}
	s.Receive(learn.Message{Memory: &learn.Memory{Version: 1, Rate: 50, Width: 0.05}}.Append(nil), 300, at(4))
	if s.Mode != learn.Rate || s.R != 50 {
		t.Errorf("after a memory: %v", &s)
	}
	s.Receive(learn.Message{Memory: &learn.Memory{Version: 1, Rate: 5, Width: 0.05}}.Append(nil), 300, at(4))
	if s.R != 50 {
		t.Errorf("a memory replaced what was known: %v", &s)
	}
}

// The learner continues, whatever it receives or reads.
func FuzzReceive(f *testing.F) {
	fa := fact(3)
	fa.Quotas = []learn.Quota{{Name: "a", HasLimit: true, Limit: 3}}
	s := learned()
	state := s.Encode()
	f.Add(learn.Message{Fact: &fa}.Append(nil), state)
	f.Add(learn.Message{Meeting: &learn.Meeting{First: at(0)}}.Append(nil), []byte{1})
	f.Add(learn.Message{Memory: &learn.Memory{Rate: 3}}.Append(learn.Message{Forget: true}.Append(learn.Message{Resume: true}.Append(nil))), []byte{})
	f.Fuzz(func(t *testing.T, messages, state []byte) {
		s := learn.New(learn.Setting{})
		_ = s.Decode(state)
		s.Receive(messages, 100, at(10))
		for n := range int64(20) {
			f := fact(n + 200)
			f.Refused = n%5 == 0
			s.Observe(&f, f.Landed)
			if p := s.Plan(f.Landed, f.Ordinal); p.Rate < 0 || math.IsNaN(p.Rate) {
				t.Fatalf("the plan is %+v", p)
			}
		}
	})
}
