package weir

import (
	"encoding/json"

	"github.com/weirgo/weir/internal/learn"
)

// Learned returns what the lanes have learned of their servers' limits, by their
// keys, for the Recall of a Transport to come: a map that marshals to JSON. Its
// values are those of this version of the package, or of one near it. Lanes that
// are sure of nothing are left out, as are routes and credentials that were refused
// alone. It is safe for concurrent use, and takes each lane's lock for a moment.
func (t *Transport) Learned() map[string]json.RawMessage {
	t.once.Do(t.init)
	all := make(map[string]json.RawMessage)
	for _, l := range t.lanes.list() {
		if l.gate.course == nil {
			continue
		}
		if m, ok := l.gate.course.Export(); ok {
			all[l.key], _ = json.Marshal(m) // it is finite: a state is
		}
	}
	return all
}

// recall returns what the lane of a key is to go on with; nil if it is to learn
// anew.
func (s *lanes) recall(key string) *learn.Memory {
	if s.settings.recall == nil || s.settings.learn == LearnOff {
		return nil
	}
	text := s.settings.recall(key)
	if text == nil {
		return nil
	}
	m := new(learn.Memory)
	err := json.Unmarshal(text, m)
	if err == nil {
		err = m.Validate()
	}
	if err == nil {
		return m
	}
	if s.forgotten.CompareAndSwap(false, true) {
		s.settings.logger().Warn("weir: a lane learns anew: what Recall returned was not learned by this version", "lane", key, "error", err)
	}
	return nil
}
