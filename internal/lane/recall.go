package lane

import "github.com/weirgo/weir/internal/learn"

// recall returns what was learned before for the lane of a key; nil if the lane begins
// anew.
func (s *Lanes) recall(key string) *learn.Memory {
	if s.settings.Recall == nil || !s.settings.Learn {
		return nil
	}
	return s.settings.Recall(key)
}

// Export returns what the lane has learned, for the Recall of a later owner. It
// returns false if the lane is sure of nothing.
func (l *Lane) Export() (learn.Memory, bool) {
	return l.course.Export()
}
