package learn

// reserve returns how many permits are kept for calls of others and for
// readings that come late.
func (t *Ceiling) reserve(rtt float64) float64 {
	size := t.size()
	keep := max(3*t.Call, 0.1*size)
	if t.Slope > 0 {
		keep = max(keep, min(size/3, 0.1*t.Slope), t.Slope*rtt)
	}
	return min(keep, size/3)
}

// ahead returns how many numbers beyond one the next call takes, of which the quota can have
// as many left.
func (s *State) ahead(t *Ceiling) int64 {
	if s.Ahead == 0 {
		return 0
	}
	return min(s.Ahead, max(0, int64(t.size()-t.reserve(s.RTT))-1))
}
