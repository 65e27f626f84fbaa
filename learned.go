package weir

import "encoding/json"

// Learned returns what the lanes have learned of their servers' limits, by key,
// for the Recall of a later Transport. The map marshals to JSON. Its values can
// be read by this version of the package, and by versions near it. Lanes that
// are sure of nothing are left out. So is what was learned of single routes and
// credentials. Learned is safe for concurrent use, and takes each lane's lock
// for a moment.
func (t *Transport) Learned() map[string]json.RawMessage {
	t.once.Do(t.init)
	all := make(map[string]json.RawMessage)
	for _, l := range t.lanes.All() {
		if m, ok := l.Export(); ok {
			all[l.Key()], _ = json.Marshal(m) // it is finite: a state is
		}
	}
	return all
}
