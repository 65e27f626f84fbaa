package learn

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Message is what one of the processes that share a lane sends to all of them, through their store. All
// observe the messages in the store's order, so their states are equal. It is sent as JSON: a version of Weir
// ignores unknown fields. With the zero Message the state only follows the store's clock.
type Message struct {
	Fact    *Fact                        `json:"fact,omitzero"` // without an Ordinal: its call departed before the processes began to learn together
	Meeting *Meeting                     `json:"meeting,omitzero"`
	Resume  bool                         `json:"resume,omitzero"` // an operator has ended the wait that the vendor asked for
	Forget  bool                         `json:"forget,omitzero"` // forget everything learned
	Memory  *Memory                      `json:"memory,omitzero"` // for states without knowledge
	Unread  int64                        `json:"unread,omitzero"` // this departure will not be answered, see [State.Unread]
	Lapsed  struct{ First, Count int64 } `json:"lapsed,omitzero"` // departures that will not take place, see [State.Lapsed]
	Hurry   bool                         `json:"hurry,omitzero"`  // calls in flight are slow, see [State.Hurry]
}

// A Meeting is a process's knowledge of a lane from before the processes began to learn together.
type Meeting struct {
	Took  time.Duration // from the departure of a call to its answer
	First throttle.Instant
	Pace  [2]throttle.Instant // when two calls departed
	Back  [2]int64            // how many of the lane's calls have departed since each of them
	Cap   float64             // most calls in flight; zero: any number
}

const (
	mostQuotas = 8       // of one sent fact
	mostCalls  = 1 << 53 // an ordinal above it is garbage
)

// Append appends the message to those to be sent.
func (m Message) Append(b []byte) []byte {
	if m.Fact != nil && len(m.Fact.Quotas) > mostQuotas {
		short := *m.Fact
		short.Quotas = short.Quotas[:mostQuotas]
		m.Fact = &short
	}
	text, _ := json.Marshal(m) // nothing for a number that JSON cannot express
	return append(b, text...)
}

// Receive observes messages. Granted is the latest ordinal of the store when it took them, and at is its instant then.
// Receive stops at malformed JSON, and at an invalid Fact or Lapsed. An invalid Meeting or Memory is skipped.
func (s *State) Receive(messages []byte, granted int64, at throttle.Instant) {
	if s.Behind(at) { // otherwise a call that is due in a moment would wait until the clock has caught up
		moveBack(reflect.ValueOf(s).Elem(), s.Last.At.Sub(at))
	}
	for d := json.NewDecoder(bytes.NewReader(messages)); ; {
		var m Message
		if d.Decode(&m) != nil || !s.take(&m, granted, at) {
			return
		}
	}
}

// take observes one message, and reports whether it is valid.
func (s *State) take(m *Message, granted int64, at throttle.Instant) bool {
	switch {
	case m.Fact != nil:
		return s.receive(m.Fact, granted, at)
	case m.Meeting != nil:
		s.meeting(m.Meeting, granted)
	case m.Resume:
		s.Resume(at, granted)
	case m.Forget:
		*s = New(s.Setting)
	case m.Memory != nil:
		if s.Mode == Start && m.Memory.Validate() == nil {
			s.Import(*m.Memory)
		}
	case m.Unread > 0:
		s.Unread(min(m.Unread, granted))
	case m.Lapsed.Count > 0:
		first, count := m.Lapsed.First, m.Lapsed.Count
		if first < 0 || count > 1<<20 || first > granted+1-count {
			return false
		}
		s.Lapsed(first, count)
	case m.Hurry:
		s.Hurry()
	}
	return true
}

// receive observes one fact, and reports whether it is valid. A call without an ordinal departed before any message. Until
// the first refusal it counts as the latest departure, and later as an old one.
func (s *State) receive(f *Fact, granted int64, at throttle.Instant) bool {
	if f.Departed < 0 || f.Landed < f.Departed || f.Ordinal < 0 || f.Ordinal > mostCalls || f.Until < 0 || len(f.Quotas) > mostQuotas {
		return false
	}
	f.Granted = granted
	f.Ordinal = min(f.Ordinal, granted)
	if f.Ordinal == 0 {
		if f.Ordinal, f.guessed = granted, true; s.Cut > 0 {
			f.Ordinal, f.Quotas = min(s.Cut, granted), nil // a level is counted from the departure
		}
	}
	f.Departed, f.Landed = min(f.Departed, at), min(f.Landed, at)
	f.Flying = min(max(f.Flying, 1), 1<<20)
	s.Observe(f, at)
	return true
}

// meeting applies earlier knowledge, if nothing was learned yet.
func (s *State) meeting(m *Meeting, granted int64) {
	if s.RTT > 0 || s.Mode != Start || m.First <= 0 {
		return
	}
	first := Mark{min(1, granted, granted-m.Back[0]), m.First} // a sub-lane's first calls departed before the store counted
	pace := [2]Mark{first, first}
	for i, at := range m.Pace {
		if at > m.First { // otherwise only the first call is known
			pace[i] = Mark{granted - max(0, m.Back[i]), at}
		}
	}
	s.Met(m.Took, first, pace)
	if m.Cap >= 1 && m.Cap <= 1<<20 {
		s.Cap = m.Cap
	}
}

// mostLag bounds how far a clock lags that has not moved back, and how much of a fact's delay is part of the round trip.
const mostLag = time.Second

// Behind reports whether the state's clock has moved back: it is before the latest departure.
func (s *State) Behind(now throttle.Instant) bool { return s.Last.At.Sub(now) > mostLag }

func moveBack(v reflect.Value, by time.Duration) {
	switch {
	case v.Type() == reflect.TypeFor[throttle.Instant]():
		if at := throttle.Instant(v.Int()); at > 0 {
			v.SetInt(int64(max(1, at.Add(-by))))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			moveBack(v.Field(i), by)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			moveBack(v.Index(i), by)
		}
	}
}
