package sim

// The events of a run are a heap: the next one at its root, and those of one instant in the order
// in which they were pushed.

func (w *world) push(at int64, k kind, id int32) {
	w.seq++
	w.events = append(w.events, event{at, w.seq, k, id})
	h := w.events
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !before(&h[i], &h[p]) {
			break
		}
		h[i], h[p] = h[p], h[i]
		i = p
	}
}

func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (w *world) pop() event {
	h := w.events
	e := h[0]
	n := len(h) - 1
	h[0] = h[n]
	w.events = h[:n]
	h = w.events
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && before(&h[c+1], &h[c]) {
			c++
		}
		if !before(&h[c], &h[i]) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	return e
}
