package weir

import (
	"fmt"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/learn"
)

// Resume opens the lane of a key, for an operator who knows that the pause no
// longer holds for which the server asked. The pauses of the lane, of its
// routes and of its credentials end at once, even those longer than MaxPause.
// They end, too, in the other processes that share the lane's limits, if the
// Store can reach those. If the lane was closed, one call goes first, and the
// others follow its good answer. A lane that is not paused stays as it is.
//
// The key "" is also that of the lane that keys beyond MaxLanes share. The
// error says why there can be no lane of that key: limits that do not validate,
// or shaping.ErrClosed. Resume is safe for concurrent use.
func (t *Transport) Resume(key string) error {
	if err := t.relieve(key, (*lane.Lanes).Resume); err != nil {
		return fmt.Errorf("weir: resuming lane %q: %w", key, err)
	}
	return nil
}

// Forget makes the lane of a key learn from the beginning, for an operator who
// knows that the server's limit has changed. The lane forgets what the answers
// have taught it, and its routes and credentials, and what ImportLearned brought. Its
// pauses end as by Resume. Configured limits stay, and so does what was used of
// them.
//
// The key "" is also that of the lane that keys beyond MaxLanes share. The
// error says why there can be no lane of that key: limits that do not validate,
// or shaping.ErrClosed. Forget is safe for concurrent use.
func (t *Transport) Forget(key string) error {
	// First, because a lane that is made from now on would go on with it.
	t.changeMemories(func(all map[string]learn.Memory) { delete(all, key) })
	if err := t.relieve(key, (*lane.Lanes).Forget); err != nil {
		return fmt.Errorf("weir: forgetting lane %q: %w", key, err)
	}
	return nil
}

// relieve calls do for the lane of a key and for its sub-lanes.
func (t *Transport) relieve(key string, do func(*lane.Lanes, *lane.Lane, string)) error {
	t.once.Do(t.init)
	l, err := t.enter(key)
	if err != nil {
		return err
	}
	defer l.Leave(nil)
	do(t.lanes, l, key)
	return nil
}
