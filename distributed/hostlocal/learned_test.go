package hostlocal

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A snapshot of a file that was lost replaces no message of the new one.
func TestASnapshotReplacesNoMessageThatItLacks(t *testing.T) {
	journalOf := func() (j journal) {
		j.condense(100, []byte("old"))
		j.add(1, 2, []byte("one"))
		j.add(3, 4, []byte("two"))
		return j
	}
	whole := journalOf()
	second, end := 100+int64(len(whole.entries))/2, whole.to()
	for name, test := range map[string]struct {
		place, from int64
		snapshot    string
		messages    string
	}{
		"in the first":   {101, 100, "old", "one two"},
		"at the second":  {second, second, "new", "two"},
		"in the second":  {end - 1, 100, "old", "one two"},
		"at the end":     {end, end, "new", ""},
		"behind the end": {end + 1, end + 1, "new", "one two"},
	} {
		j := journalOf()
		j.condense(test.place, []byte("new"))
		var messages []string
		each(j.entries, func(message []byte, _ int64, _ throttle.Instant) { messages = append(messages, string(message)) })
		if j.from != test.from || string(j.snapshot) != test.snapshot || strings.Join(messages, " ") != test.messages {
			t.Errorf("%s: from place %d on: %q, then %q, want %d, %q, %q", name, j.from, j.snapshot, messages, test.from, test.snapshot, test.messages)
		}
	}
}

// A listed is a learner that lists what it applies.
type listed struct {
	store.Learner
	unsent, applied string
}

func (l *listed) Propose(store.FleetState) (e store.Entry) {
	e.Data, l.unsent = []byte(l.unsent), ""
	return e
}
func (l *listed) Apply(message []byte, _ int64, _ throttle.Instant) {
	l.applied += string(message) + " "
}
func (l *listed) Snapshot() []byte                            { return []byte(l.applied) }
func (l *listed) Restore(learned []byte)                      { l.applied = string(learned) }
func (l *listed) Pacing(store.FleetState) (none store.Pacing) { return none }

// After a loss of the files, processes that had applied different messages meet at one place. What
// the one that is behind sends first is not lost, nor is what only the other had applied, unless the
// first sent as many bytes as that before.
func TestALossFindsProcessesAtDifferentPlaces(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, test := range []struct {
		after []string // sent by the one that is behind
		want  string
	}{
		{[]string{"x"}, "first ahead x "},
		{[]string{long}, "first " + long + " "},
		{[]string{"x", long}, "first x " + long + " "},
	} {
		dir := t.TempDir() + "/weir"
		var learners [2]*listed
		var exchanges [2]*exchange
		for i := range learners {
			l := NewAt(dir, "k").(*limiter)
			learners[i], exchanges[i] = new(listed), &l.learner
			l.learner.learner = learners[i]
			defer func() { _ = l.Close() }()
		}
		send := func(i int, texts ...string) {
			for _, text := range texts {
				learners[i].unsent = text
				for range 4 {
					exchanges[i].once(patience)
				}
			}
		}
		send(0, "first")
		send(1, "ahead")
		l := exchanges[0].limiter
		l.cold.head = header{}
		if err := WriteValue(l.path+learnedFile, nil); err != nil {
			t.Fatal(err)
		}
		send(0, test.after...)
		for range 2 {
			send(1, "")
			send(0, "")
		}
		got := []string{learners[0].applied, learners[1].applied}
		if want := []string{test.want, test.want}; !slices.Equal(got, want) {
			t.Errorf("after a loss and %q both apply %q, want %q", test.after, got, want)
		}
	}
}

// Processes that had a file open meet those that made another in its place.
func TestRemovedFilesOfLearningAreLeft(t *testing.T) {
	dir := t.TempDir() + "/weir"
	var learners [3]*listed
	var limiters [3]*limiter
	send := func(i int, text string) {
		if limiters[i] == nil {
			limiters[i], learners[i] = NewAt(dir, "k").(*limiter), new(listed)
			limiters[i].learner.learner = learners[i]
		}
		learners[i].unsent = text
		for range 4 {
			limiters[i].learner.once(patience)
		}
	}
	send(0, "first")
	send(1, "second")
	if err := os.Remove(limiters[0].path + learnedFile); err != nil {
		t.Skip(err) // Windows removes no open file
	}
	for i, text := range []string{"a", "b", "c", "", "", ""} {
		send(i%3, text)
	}
	for i, l := range learners {
		if want := "first second a b c "; l.applied != want {
			t.Errorf("process %d applies %q, want %q", i, l.applied, want)
		}
		_ = limiters[i].Close()
	}
}
