package script

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A counting is callers of a lane whose departures the store counts.
type counting struct {
	*testing.T
	bench  *bench
	lane   string
	seen   Echo
	place  int64
	limits *EncodedLimits
}

func newCounting(t *testing.T) *counting {
	b := newBench(t)
	return &counting{T: t, bench: b, lane: b.lane(), limits: new(EncodedLimits).Learning()}
}

// ask requests permits at an instant after dawn, and returns how many are granted within a
// millisecond.
func (c *counting) ask(after time.Duration, count int, w store.Entry, p store.Pacing) int64 {
	c.Helper()
	p.Counted, p.TTL = true, time.Minute
	lesson := NewUpdate(p)
	lesson.Entry, lesson.Place = w, c.place
	r := &Request{now: dawn + Micros(after), Tolerance: asTolerance, Horizon: time.Second, Latest: time.Millisecond, Most: 100, Seen: c.seen, Limits: c.limits, Update: lesson}
	if count > 0 {
		r.Groups = []Group{{Count: count, Costs: []int64{1}}}
	}
	got := c.bench.call(c.lane, r)
	c.seen, c.place = got.Seen, got.Learned.Field.To
	return got.Count()
}

// A reading bounds departures from the first one on, in whatever order calls arrive. Departures
// above it go one by one, each once all answers before it are known.
func TestReadingsBoundDepartures(t *testing.T) {
	type step struct {
		after time.Duration
		count int
		entry store.Entry
		pace  store.Pacing
		want  int64
	}
	reading := func(ordinal, left, landed int64) store.Reading {
		return store.Reading{Ordinal: ordinal, Left: left, Landed: landed}
	}
	for name, steps := range map[string][]step{
		"no reading": {{count: 20, want: 20}, {count: 5, entry: store.Entry{Landed: 20}, want: 5}},
		"36 had landed before number 40 left, and 4 are left": {
			{count: 40, want: 40},
			{count: 9, entry: store.Entry{Landed: 36, Reading: reading(40, 4, 36)}, want: 1},
			{after: time.Millisecond, count: 9},
			{after: 2 * time.Millisecond, count: 9, entry: store.Entry{Landed: 5}, want: 1},
		},
		"an answer is missing for a second": {
			{count: 8, want: 8},
			{entry: store.Entry{Landed: 7, Reading: reading(8, 0, 7)}},
			{after: time.Millisecond, count: 1, entry: store.Entry{Landed: 1}, want: 1},
			{after: time.Second, count: 1},
			{after: 1001 * time.Millisecond, count: 1, want: 1},
		},
		"the last departure is dated later than the next call": {
			{count: 8, want: 8},
			{count: 2, entry: store.Entry{Landed: 8, Reading: reading(8, 2, 7)}, pace: store.Pacing{Interval: 300 * time.Microsecond}, want: 2},
			{pace: store.Pacing{Interval: 300 * time.Microsecond}},
			{after: 5 * time.Millisecond, count: 1, pace: store.Pacing{Interval: 300 * time.Microsecond}},
		},
		"refused calls spend nothing": {
			{count: 8, want: 8},
			{count: 9, entry: store.Entry{Landed: 4, Reading: reading(8, 4, 3)}},
			{count: 9, entry: store.Entry{Landed: 3, Refused: 3}, want: 3},
		},
		"an older departure says less": {
			{count: 8, want: 8},
			{entry: store.Entry{Reading: reading(8, 6, 3)}},
			{entry: store.Entry{Reading: reading(7, 0, 3)}},
			{count: 9, want: 2},
		},
		"all are in flight": {
			{count: 8, want: 8},
			{after: time.Millisecond, count: 1, entry: store.Entry{Landed: 1, Reading: reading(1, 2, 0)}},
		},
		"somebody else spends": {
			{count: 8, want: 8},
			{entry: store.Entry{Reading: reading(7, 20, 7)}},
			{entry: store.Entry{Reading: reading(8, 3, 7)}},
			{count: 9, want: 3},
		},
		"a reserve": {
			{count: 8, want: 8},
			{count: 9, entry: store.Entry{Landed: 8, Reading: reading(8, 6, 7)}, pace: store.Pacing{Reserve: 4}, want: 2},
		},
		"unbound": {
			{count: 8, want: 8},
			{count: 9, entry: store.Entry{Landed: 8, Reading: reading(8, 0, 7)}, pace: store.Pacing{Unbound: true}, want: 9},
		},
		"answers that never come delay once": {
			{count: 8, want: 8},
			{entry: store.Entry{Landed: 5, Reading: reading(8, 0, 5)}},
			{after: time.Second, count: 1, want: 1},
			{after: 1010 * time.Millisecond, count: 9, entry: store.Entry{Landed: 1}, want: 1},
			{after: 1020 * time.Millisecond, count: 9, entry: store.Entry{Landed: 1}, want: 1},
		},
		"a process died with eight calls": {
			{count: 16, want: 16},
			{entry: store.Entry{Landed: 8, Reading: reading(16, 0, 8)}},
			{after: 2100 * time.Millisecond},
			{after: 2100 * time.Millisecond, count: 1, want: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounting(t)
			for i, s := range steps {
				if got := c.ask(s.after, s.count, s.entry, s.pace); got != s.want {
					t.Fatalf("call %d is granted %d of %d, want %d", i, got, s.count, s.want)
				}
			}
		})
	}
}

// An answer that no caller has applied yet delays the next single call, because its consequence is
// not known.
func TestASingleCallWaitsForThePlan(t *testing.T) {
	c := newCounting(t)
	c.ask(0, 8, store.Entry{}, store.Pacing{})
	c.ask(0, 0, store.Entry{Landed: 7, Reading: store.Reading{Ordinal: 8, Landed: 7}}, store.Pacing{})
	if got := c.ask(time.Millisecond, 1, store.Entry{Landed: 1, Data: []byte("fact")}, store.Pacing{}); got != 0 {
		t.Errorf("with the fact %d are granted, want 0", got)
	}
	if got := c.ask(2*time.Millisecond, 1, store.Entry{}, store.Pacing{}); got != 1 {
		t.Errorf("once it is applied %d are granted, want 1", got)
	}
}

// A snapshot of a journal that was lost replaces no message of the new one.
func TestASnapshotReplacesNoMessageThatItLacks(t *testing.T) {
	for name, test := range map[string]struct {
		place    int64 // of the caller with the other snapshot
		from     int64
		snapshot string
		messages string
	}{
		"before the journal": {90, 100, "old", "one two"},
		"at the first":       {100, 100, "old", "one two"},
		"in the first":       {101, 100, "old", "one two"},
		"at the second":      {124, 124, "new", "two"},
		"behind the last":    {148, 148, "new", ""},
		"behind the journal": {149, 149, "new", "one two"},
		"far behind":         {9e9, 9e9, "new", "one two"},
		"in the last":        {147, 100, "old", "one two"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounting(t)
			exchange := func(place int64, snapshot, message string) Learned {
				update := NewUpdate(store.Pacing{Counted: true, TTL: time.Minute})
				update.Place, update.Snapshot, update.Entry.Data = place, []byte(snapshot), []byte(message)
				got := c.bench.call(c.lane, &Request{now: dawn, Tolerance: asTolerance, Horizon: time.Second, Limits: c.limits, Update: update})
				return got.Learned
			}
			exchange(100, "old", "one")
			if last := exchange(100, "", "two").Field; last.From != 100 || last.To != 148 {
				t.Fatalf("the places are %d to %d", last.From, last.To)
			}
			exchange(test.place, "new", "")
			got := exchange(0, "", "")
			var messages []string
			Frames(got.Entries, func(message []byte, _ int64, _ throttle.Instant) { messages = append(messages, string(message)) })
			if got.Field.From != test.from || got.Snapshot != test.snapshot || strings.Join(messages, " ") != test.messages {
				t.Errorf("from place %d on: %q, then %q, want %d, %q, %q", got.Field.From, got.Snapshot, messages, test.from, test.snapshot, test.messages)
			}
		})
	}
}

// After the refusal of a single call the next one waits until the caller that decides has applied
// it, whether readings or a probe make calls go one by one. Until then the wait that follows from
// the refusal is not known.
func TestASingleCallWaitsForARefusalToBeApplied(t *testing.T) {
	for _, pace := range []store.Pacing{{}, {Probe: true}} {
		c := newCounting(t)
		c.ask(0, 8, store.Entry{}, store.Pacing{})
		c.ask(0, 0, store.Entry{Landed: 8, Reading: store.Reading{Ordinal: 8, Landed: 7}}, pace)
		if got := c.ask(1001*time.Millisecond, 1, store.Entry{}, pace); got != 1 {
			t.Fatalf("%d are granted, want a single one", got)
		}
		other := *c
		refusal := store.Entry{Landed: 1, Refused: 1, Data: []byte("refusal"), Revoke: true}
		if got := c.ask(1002*time.Millisecond, 1, refusal, pace); got != 0 {
			t.Errorf("with the refusal %d are granted, want 0", got)
		}
		if got := other.ask(1003*time.Millisecond, 1, store.Entry{}, pace); got != 0 {
			t.Errorf("before another caller has applied the refusal %d are granted, want 0", got)
		}
		if got := c.ask(1004*time.Millisecond, 1, store.Entry{}, pace); got != 1 {
			t.Errorf("once the refusal is applied %d are granted, want 1", got)
		}
	}
}

// Departures land with their answers, and not because a permit came back, or is dated ahead.
func TestNothingLandsUnanswered(t *testing.T) {
	reading := store.Reading{Ordinal: 1, Left: 60}
	for name, test := range map[string]struct {
		count  int
		pace   time.Duration
		lapsed int64
		want   int64
	}{
		"a permit comes back": {50, 0, 1, 2},
		"permits ahead":       {4, 100 * time.Millisecond, 0, 1},
	} {
		c := newCounting(t)
		c.ask(0, 1, store.Entry{}, store.Pacing{})
		c.ask(time.Millisecond, 0, store.Entry{Landed: 1, Reading: reading}, store.Pacing{})
		landed := int64(0)
		for i, lapsed := range []int64{0, test.lapsed, 0} {
			update := NewUpdate(store.Pacing{Counted: true, TTL: time.Minute, Interval: test.pace})
			update.Place, update.Lapsed = c.place, lapsed
			r := &Request{now: dawn + Micros(time.Duration(i+2)*time.Millisecond), Tolerance: asTolerance, Horizon: time.Second, Latest: time.Second, Most: 100, Seen: c.seen, Limits: c.limits, Update: update}
			if i == 0 {
				r.Groups = []Group{{Count: test.count, Costs: []int64{1}}}
			}
			got := c.bench.call(c.lane, r)
			c.seen, landed = got.Seen, got.Learned.Landed
		}
		if landed != test.want {
			t.Errorf("%s: %d departures have landed, want %d", name, landed, test.want)
		}
	}
}
