package learn

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Processes that share a lane send each other facts and little else, in an order
// that their store keeps. Each of them observes all of it in that order, so that
// their states are the same.

// The kinds of messages.
const (
	kindFact = 1 + iota
	kindMeeting
	kindResume
	kindForget
	kindMemory
	kindUnread
	kindHurry
	kindLapsed
	kindStep
)

// mostQuotas bounds the quotas of one fact that are sent.
const mostQuotas = 8

// A Meeting is what a process knew of a lane before the processes began to
// learn together.
type Meeting struct {
	Took  time.Duration // from the departure of a call to its answer
	First throttle.Instant
	Pace  [2]throttle.Instant // when two calls left
	Back  [2]int64            // how many of the lane's calls have left since each of them
	Cap   float64             // calls in flight that were allowed; zero: any number
}

// AppendFact appends a fact to a message. If the fact has no Ordinal, its
// call left before the processes began to learn together. Granted is not sent,
// because the store counts it.
func AppendFact(b []byte, f *Fact) []byte {
	b = append(b, kindFact, flags(f.Waited, f.Refused, f.Until > 0))
	b = binary.AppendVarint(b, int64(f.Departed))
	b = binary.AppendUvarint(b, uint64(max(0, f.Landed.Sub(f.Departed))))
	b = binary.AppendUvarint(b, uint64(max(0, f.Ordinal)))
	b = binary.AppendUvarint(b, uint64(max(0, f.Flying)))
	if f.Until > 0 {
		b = binary.AppendVarint(b, int64(f.Until))
	}
	quotas := f.Quotas[:min(len(f.Quotas), mostQuotas)]
	b = binary.AppendUvarint(b, uint64(len(quotas)))
	for i := range quotas {
		b = appendQuota(b, &quotas[i])
	}
	return b
}

// appendQuota appends a quota of a fact.
func appendQuota(b []byte, q *Quota) []byte {
	b = append(b, flags(q.HasLimit, q.HasRemaining, q.HasReset, q.HasWindow, q.Advisory))
	b = appendText(appendText(b, q.Name), q.Unit)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(q.Limit))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(q.Remaining))
	return binary.AppendVarint(binary.AppendVarint(b, int64(q.Reset)), int64(q.Window))
}

// AppendMeeting appends what was known before.
func AppendMeeting(b []byte, m *Meeting) []byte {
	b = append(b, kindMeeting)
	b = binary.AppendVarint(b, int64(m.Took))
	for _, at := range [...]throttle.Instant{m.First, m.Pace[0], m.Pace[1]} {
		b = binary.AppendVarint(b, int64(at))
	}
	b = binary.AppendVarint(binary.AppendVarint(b, m.Back[0]), m.Back[1])
	return binary.BigEndian.AppendUint64(b, math.Float64bits(m.Cap))
}

// AppendResume appends that an operator has ended the wait that the vendor asked for. It no longer
// holds.
func AppendResume(b []byte) []byte { return append(b, kindResume) }

// AppendForget appends that everything is to be learned again.
func AppendForget(b []byte) []byte { return append(b, kindForget) }

// AppendMemory appends a memory for states that know nothing.
func AppendMemory(b []byte, m Memory) []byte {
	b = append(b, kindMemory)
	for _, v := range [...]float64{m.Rate, m.Width, m.Period, m.InFlight} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// AppendUnread appends that a departure will not be answered, see [State.Unread].
func AppendUnread(b []byte, ordinal int64) []byte {
	return binary.AppendUvarint(append(b, kindUnread), uint64(max(0, ordinal)))
}

// AppendLapsed appends that departures will not take place, see [State.Lapsed].
func AppendLapsed(b []byte, first, count int64) []byte {
	b = binary.AppendUvarint(append(b, kindLapsed), uint64(max(0, first)))
	return binary.AppendUvarint(b, uint64(max(0, count)))
}

// AppendStep appends that the store's clock moved back, see [State.Behind].
func AppendStep(b []byte) []byte { return append(b, kindStep) }

// AppendHurry appends that calls in flight are slow, see [State.Hurry].
func AppendHurry(b []byte) []byte { return append(b, kindHurry) }

// flags returns a byte with one bit for each flag.
func flags(set ...bool) (b byte) {
	for i, on := range set {
		if on {
			b |= 1 << i
		}
	}
	return b
}

// appendText appends a text, cut to 64 bytes. Names are no longer than that.
func appendText(b []byte, text string) []byte {
	text = text[:min(len(text), 64)]
	return append(append(b, byte(len(text))), text...)
}

// Receive observes a message. Granted is the latest ordinal that the
// store had given when it took the message, and at is when that was. Hear stops
// at what makes no sense.
func (s *State) Receive(message []byte, granted int64, at throttle.Instant) {
	s.follow(at)
	r := reader{left: message}
	for len(r.left) > 0 && !r.bad {
		switch r.byte() {
		case kindFact:
			f := r.fact()
			if !r.bad {
				s.receive(&f, granted, at)
			}
		case kindMeeting:
			if m := r.meeting(); !r.bad {
				s.meeting(&m, granted)
			}
		case kindResume:
			s.Resume(at)
		case kindForget:
			*s = New(s.Setting)
		case kindMemory:
			m := Memory{Version: memoryVersion, Rate: r.float(), Width: r.float(), Period: r.float(), InFlight: r.float()}
			if !r.bad && s.Mode == Start && m.Validate() == nil {
				s.Import(m)
			}
		case kindUnread:
			s.Unread(min(r.count(1<<53), granted))
		case kindLapsed:
			if first, count := r.count(1<<53), r.count(1<<20); !r.bad && first+count <= granted+1 {
				s.Lapsed(first, count)
			}
		case kindHurry:
			s.Hurry()
		case kindStep: // it was followed
		default:
			return
		}
	}
}

// receive observes one fact. A call without an ordinal left before any message
// came. If it is the first to be refused, it counts as the latest departure of
// all, and otherwise as an old one.
func (s *State) receive(f *Fact, granted int64, at throttle.Instant) {
	f.Granted = granted
	f.Ordinal = min(f.Ordinal, granted)
	if f.Ordinal == 0 {
		if f.Ordinal, f.guessed = granted, true; s.Cut > 0 {
			f.Ordinal, f.Quotas = min(s.Cut, granted), nil // a level is counted from the departure
		}
	}
	f.Departed, f.Landed = min(f.Departed, at), min(f.Landed, at)
	f.Flying = min(max(f.Flying, 1), 1<<20)
	s.observe(f, at)
}

// meeting takes in what was known before, if nothing was learned yet.
func (s *State) meeting(m *Meeting, granted int64) {
	if s.RTT > 0 || s.Mode != Start || m.First == 0 {
		return
	}
	first := Mark{min(1, granted), m.First}
	pace := [2]Mark{first, first}
	for i, at := range m.Pace {
		if at > m.First { // otherwise no call is known but the first
			pace[i] = Mark{granted - max(0, m.Back[i]), at}
		}
	}
	s.Met(m.Took, first, pace)
	if m.Cap >= 1 && m.Cap <= 1<<20 {
		s.Cap = m.Cap
	}
}

// A reader reads a message. Once something makes no sense, it is bad, and
// reads zeros.
type reader struct {
	left []byte
	bad  bool
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.left) {
		r.bad, r.left = true, nil
		return make([]byte, n)
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *reader) byte() byte { return r.take(1)[0] }

// uint reads a varint that is not negative.
func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.left)
	if size <= 0 {
		r.bad, r.left = true, nil
		return 0
	}
	r.left = r.left[size:]
	return n
}

// int reads a varint.
func (r *reader) int() int64 {
	n, size := binary.Varint(r.left)
	if size <= 0 {
		r.bad, r.left = true, nil
		return 0
	}
	r.left = r.left[size:]
	return n
}

// count reads a number that is neither negative nor above most.
func (r *reader) count(most uint64) int64 {
	n := r.uint()
	if n > most {
		r.bad = true
	}
	return int64(min(n, most))
}

// instant reads an instant between the years 1970 and 2262.
func (r *reader) instant() throttle.Instant {
	n := r.int()
	if n < 0 {
		r.bad = true
	}
	return throttle.Instant(max(n, 0))
}

// float reads a finite number.
func (r *reader) float() float64 {
	f := math.Float64frombits(binary.BigEndian.Uint64(r.take(8)))
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.bad = true
		return 0
	}
	return f
}

func (r *reader) text() string { return string(r.take(int(r.byte()))) }

// fact reads what AppendFact wrote.
func (r *reader) fact() (f Fact) {
	set := r.byte()
	f.Waited, f.Refused = set&1 != 0, set&2 != 0
	f.Departed = r.instant()
	f.Landed = f.Departed.Add(time.Duration(r.count(math.MaxInt64)))
	f.Ordinal, f.Flying = r.count(1<<53), int(r.count(1<<30))
	if set&4 != 0 {
		f.Until = r.instant()
	}
	n := r.count(mostQuotas)
	for range n {
		f.Quotas = append(f.Quotas, r.quota())
	}
	return f
}

// quota reads what appendQuota wrote.
func (r *reader) quota() (q Quota) {
	set := r.byte()
	q.HasLimit, q.HasRemaining, q.HasReset = set&1 != 0, set&2 != 0, set&4 != 0
	q.HasWindow, q.Advisory = set&8 != 0, set&16 != 0
	q.Name, q.Unit = r.text(), r.text()
	q.Limit, q.Remaining = r.float(), r.float()
	q.Reset, q.Window = time.Duration(r.int()), time.Duration(r.int())
	return q
}

// meeting reads what AppendMeeting wrote.
func (r *reader) meeting() (m Meeting) {
	m.Took = time.Duration(r.int())
	m.First, m.Pace[0], m.Pace[1] = r.instant(), r.instant(), r.instant()
	m.Back[0], m.Back[1] = r.int(), r.int()
	m.Cap = r.float()
	return m
}
