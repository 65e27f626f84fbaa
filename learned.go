package weir

import (
	"encoding/json"

	"github.com/weirgo/weir/internal/learn"
)

// Learned returns what the lanes have learned of their servers' limits, by key,
// for the Recall of a later Transport. The map marshals to JSON. Its values can
// be read by this version of the package, and by versions near it. Lanes that
// are sure of nothing are left out. So is what was learned of single routes and
// credentials. Learned is safe for concurrent use, and takes each lane's lock
// for a moment.
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

// recall returns what the lane of a key goes on with, and nil if it learns from
// the beginning.
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
