package testserver

import "slices"

// A Ceiling is what a client may know of a vendor from answers alone. Let an answer report that r
// calls are left, and let l calls have landed before that call left. Then every call up to number r
// + l + 1 is granted, in any order of arrival, if no other client spends. Calls are numbered by
// departure, and those known to be refused are not counted.
//
// For example, the tenth call leaves when 6 have landed, and reports 3 left:
// calls up to the tenth are granted (3 + 6 + 1), and so the other 3 may be those
// that were in flight.
//
// A client that knows the rate, over a link that keeps the order of calls, may exceed the ceiling
// without a refusal. Judge by it only with few calls in flight.
type Ceiling struct {
	// Limit is a token bucket at whose rate the ceiling rises after the call that reported it has
	// left, up to its burst. If zero, the ceiling does not rise.
	Limit Limit

	// Newest makes the ceiling that of the call that left last, of those whose answers are known.
	// Otherwise the highest is used, which is as safe if no other client spends. Only the highest
	// has no race: an answer may land between the decision to send a call and the departure that
	// the tap sees.
	Newest bool
}

// Over returns the trips that left at or above the ceiling, from the first
// answer on that reports what is left.
func (c Ceiling) Over(trips []Trip) []Trip {
	var known []reading
	var over []Trip
	departed, landed, refused := 0, 0, 0 // landed excludes those refused
	before := make(map[int]int)          // landed, by the number of a departure
	for _, e := range history(trips) {
		trip := trips[e.trip]
		if e.landing {
			if trip.refused() {
				refused++
			}
			if trip.Reported {
				known = append(known, reading{trip, before[trip.Departed]})
			}
			if !trip.refused() {
				landed++
			}
			continue
		}
		if len(known) > 0 && float64(departed-refused) >= c.at(known, trip) {
			over = append(over, trip)
		}
		before[trip.Departed] = landed
		departed++
	}
	return over
}

// A reading is an answer that reports what is left.
type reading struct {
	Trip
	before int // calls that had landed when it left, without those refused
}

// at returns the ceiling for a departure.
func (c Ceiling) at(known []reading, trip Trip) float64 {
	if c.Newest {
		last := slices.MaxFunc(known, func(a, b reading) int { return a.Departed - b.Departed })
		return c.of(last, trip)
	}
	most := c.of(known[0], trip)
	for _, r := range known[1:] {
		most = max(most, c.of(r, trip))
	}
	return most
}

// of returns the ceiling that one answer reports, for a later departure.
func (c Ceiling) of(r reading, trip Trip) float64 {
	left := float64(r.Remaining)
	if l := c.Limit; l.Per > 0 {
		rise := trip.Left.Sub(r.Left).Seconds() * float64(l.Permits) / l.Per.Seconds()
		left = min(left+rise, max(left, float64(l.Burst)))
	}
	if !r.refused() {
		left++ // itself
	}
	return left + float64(r.before)
}

// An event is a departure or a landing of a trip.
type event struct {
	number, trip int
	landing      bool
}

// history returns what happened, in order.
func history(trips []Trip) []event {
	var all []event
	for i, t := range trips {
		all = append(all, event{t.Departed, i, false})
		if t.Landed > 0 {
			all = append(all, event{t.Landed, i, true})
		}
	}
	slices.SortFunc(all, func(a, b event) int { return a.number - b.number })
	return all
}
