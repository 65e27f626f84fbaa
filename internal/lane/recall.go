package lane

import (
	"encoding/json"

	"github.com/weirgo/weir/internal/learn"
)

// recall returns what the lane of a key goes on with, and nil if it learns from
// the beginning.
func (s *Lanes) recall(key string) *learn.Memory {
	if s.settings.Recall == nil || !s.settings.Learn {
		return nil
	}
	text := s.settings.Recall(key)
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
		s.settings.Logger().Warn("weir: a lane learns anew: what Recall returned was not learned by this version", "lane", key, "error", err)
	}
	return nil
}

// Export returns what the lane has learned, for the Recall of a later owner. It
// returns false if the lane is sure of nothing.
func (l *Lane) Export() (learn.Memory, bool) {
	return l.course.Export()
}
