package weir

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/learn"
)

// Learning says whether a lane learns its server's limit from the answers. The learned limit counts
// requests. A quota in another unit, such as the tokens of a language model, delays no call before
// the server refuses for lack of it. For such a quota, configure a limit of that unit, with
// Transport.Cost.
type Learning uint8

// The ways to learn.
const (
	// LearnOn finds a limit that was not configured, or was configured too high, and enforces it in
	// the lane. A window that the server reports is spent as calls come.
	LearnOn Learning = iota
	// LearnSpread is LearnOn, but calls are spread evenly over the rest of such a
	// window.
	LearnSpread
	// LearnOff learns nothing. A refusal pauses the lane for the time that it
	// states; before and after, the configured limits alone pace it. If other
	// processes that share the lane through a store learn, this one sends them its
	// answers and keeps to what they learned.
	LearnOff
)

// learningWords are the ways to learn as texts, in the order of their constants.
var learningWords = [...]string{"on", "spread", "off"}

// MarshalText implements [encoding.TextMarshaler]. The texts are "on", "spread" and "off".
func (l Learning) MarshalText() ([]byte, error) {
	if int(l) >= len(learningWords) {
		return nil, fmt.Errorf("weir: Learning %d is unknown", l)
	}
	return []byte(learningWords[l]), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It reads what MarshalText writes.
func (l *Learning) UnmarshalText(text []byte) error {
	i := slices.Index(learningWords[:], string(text))
	if i < 0 {
		return fmt.Errorf("weir: Learning %q is none of on, spread and off", text)
	}
	*l = Learning(i)
	return nil
}

// ExportLearned returns what the lanes have learned of their servers' limits, by key, for the
// ImportLearned of a later Transport. The map marshals to JSON. Its values can be read by this
// version of the package, and by versions near it. Lanes without certain knowledge are left out,
// and so are single routes and credentials. ExportLearned is safe for concurrent use, and takes
// each lane's lock for a moment.
func (t *Transport) ExportLearned() map[string]json.RawMessage {
	t.once.Do(t.init)
	all := make(map[string]json.RawMessage)
	for _, l := range t.lanes.All() {
		if m, ok := l.Course.Export(); ok {
			all[l.Key], _ = json.Marshal(m) // states have finite numbers
		}
	}
	return all
}

// ImportLearned takes what ExportLearned returned, usually of an earlier process. A lane uses it
// from its first request on, unless Learn is off or [Transport.Forget] was called for its key.
// Existing lanes keep their own knowledge. A second call adds to the first.
//
// The error names each key whose value is not from ExportLearned, or from another version. Those
// lanes start without knowledge, and all other values are used. ImportLearned is safe for
// concurrent use.
func (t *Transport) ImportLearned(learned map[string]json.RawMessage) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(learned)) {
		m := new(learn.Memory)
		err := json.Unmarshal(learned[key], m)
		if err == nil {
			err = m.Validate()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("weir: learned of lane %q: %w", key, err))
			continue
		}
		t.memories.Store(key, m)
	}
	return errors.Join(errs...)
}

// imported returns ImportLearned's value for a key, and nil if there is none.
func (t *Transport) imported(key string) *learn.Memory {
	m, _ := t.memories.Load(key)
	memory, _ := m.(*learn.Memory)
	return memory
}

// Forget makes the lane of a key learn from the beginning, for an operator who knows that the
// server's limit has changed. The lane forgets what it, its routes and its credentials have
// learned, and what was imported. Its pauses end as by Resume. Configured limits stay, with their
// used permits.
//
// The key "" is also that of the lane that keys beyond MaxLanes share. The error is for limits that
// do not validate, or shaping.ErrClosed. Forget is safe for concurrent use.
func (t *Transport) Forget(key string) error {
	// First, because a lane made from now on would use it.
	t.memories.Delete(key)
	return t.relieve("forgetting", key, (*lane.Lanes).Forget)
}
