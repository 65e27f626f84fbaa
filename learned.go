package weir

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirgo/weir/internal/learn"
)

// ExportLearned returns what the lanes have learned of their servers' limits, by
// key, for the ImportLearned of a later Transport. The map marshals to JSON. Its
// values can be read by this version of the package, and by versions near it.
// Lanes that are sure of nothing are left out. So is what was learned of single
// routes and credentials. ExportLearned is safe for concurrent use, and takes each
// lane's lock for a moment.
func (t *Transport) ExportLearned() map[string]json.RawMessage {
	t.once.Do(t.init)
	all := make(map[string]json.RawMessage)
	for _, l := range t.lanes.All() {
		if m, ok := l.Export(); ok {
			all[l.Key()], _ = json.Marshal(m) // it is finite: a state is
		}
	}
	return all
}

// ImportLearned takes what ExportLearned returned, usually of an earlier process. A lane
// goes on with it from its first request on, unless Learn is off or [Transport.Forget] was
// called for its key. Lanes that there are already keep what they know. A second call adds
// to the first.
//
// The error names each key whose value ExportLearned did not make, or another version
// made. Those lanes learn from the beginning, and all other values are taken.
// ImportLearned is safe for concurrent use.
func (t *Transport) ImportLearned(learned map[string]json.RawMessage) error {
	var errs []error
	read := make(map[string]learn.Memory, len(learned))
	for _, key := range slices.Sorted(maps.Keys(learned)) {
		var m learn.Memory
		err := json.Unmarshal(learned[key], &m)
		if err == nil {
			err = m.Validate()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("weir: learned of lane %q: %w", key, err))
			continue
		}
		read[key] = m
	}
	t.changeMemories(func(all map[string]learn.Memory) { maps.Copy(all, read) })
	return errors.Join(errs...)
}

// changeMemories changes what ImportLearned brought.
func (t *Transport) changeMemories(change func(map[string]learn.Memory)) {
	for {
		old := t.memories.Load()
		all := make(map[string]learn.Memory)
		if old != nil {
			all = maps.Clone(*old)
		}
		change(all)
		if t.memories.CompareAndSwap(old, &all) {
			return
		}
	}
}

// imported returns what ImportLearned brought for a key, and nil if it brought nothing.
func (t *Transport) imported(key string) *learn.Memory {
	all := t.memories.Load()
	if all == nil {
		return nil
	}
	if m, ok := (*all)[key]; ok {
		return &m
	}
	return nil
}
