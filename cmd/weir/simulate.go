package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A candidate is limits enforced together, and their result.
type candidate struct {
	text    string // as it was given
	limits  []throttle.Limit
	patient outcome // every call waits as long as it takes
	bounded outcome // as with Line.MaxWait; the zero value: there is no bound
}

// parseCandidate reads limits with commas between them.
func parseCandidate(text string) (c candidate, err error) {
	c.text = text
	for part := range strings.SplitSeq(text, ",") {
		l, err := throttle.ParseLimit(strings.TrimSpace(part))
		if err != nil {
			return c, err
		}
		c.limits = append(c.limits, l)
	}
	_, err = throttle.Resolve(c.limits...)
	return c, err
}

// An outcome is what happened to each call.
type outcome struct {
	departures []throttle.Instant // in order; those of rejected calls are left out
	waits      []time.Duration    // of the calls that departed, in their order
	arrived    []throttle.Instant // when they came
	rejected   int
	longest    int // most calls in line at once
}

// simulate makes calls wait in line for limits, in order of their arrivals. A call that would wait
// for longer than maxWait is rejected on arrival, and spends nothing; zero: no bound. It fails if a
// call would never depart, or after the last instant.
func simulate(limits []throttle.Limit, arrivals []throttle.Instant, maxWait time.Duration) (o outcome, err error) {
	local := throttle.Local{Wall: func(now throttle.Instant) throttle.Instant { return now }}
	limiter, err := local.Limiter("", limits...)
	if err != nil {
		return o, err
	}
	now := throttle.Instant(0) // the head of the line departs no earlier
	for _, came := range arrivals {
		now = max(now, came)
		at, ok, err := depart(limiter, now, throttle.Request{N: 1, Since: came}, maxWait)
		if err != nil {
			return o, err
		}
		if !ok {
			o.rejected++
			continue
		}
		now = at
		o.departures, o.arrived, o.waits = append(o.departures, at), append(o.arrived, came), append(o.waits, at.Sub(came))
	}
	o.longest = longestLine(o.arrived, o.departures)
	return o, nil
}

// depart returns when the head of the line departs, and false if it would wait for too long.
func depart(limiter throttle.Limiter, now throttle.Instant, r throttle.Request, maxWait time.Duration) (throttle.Instant, bool, error) {
	for {
		if maxWait > 0 && now.Sub(r.Since) > maxWait {
			return 0, false, nil
		}
		if maxWait > 0 { // the last Take might spend a permit that is too late
			if f := limiter.Forecast(now, r); f.At.Sub(r.Since) > maxWait {
				return 0, false, nil
			}
		}
		grant, err := limiter.Take(now, r)
		switch {
		case err != nil:
			return 0, false, err
		case grant.At >= throttle.Never.Add(-time.Second): // a bucket counts to just before it
			return 0, false, fmt.Errorf("a call would depart after the year 2262, or never")
		case grant.At <= now:
			return now, true, nil
		}
		now = grant.At
	}
}

// longestLine returns the most calls that were in line at once. Both lists are in order. A
// call that departs as it comes was not in line.
func longestLine(arrived, departed []throttle.Instant) (longest int) {
	left := 0
	for i, came := range arrived {
		for left < len(departed) && departed[left] <= came {
			left++
		}
		longest = max(longest, i+1-left)
	}
	return longest
}

// quantile returns the least wait that a share of the waits does not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

// held returns how many calls waited.
func (o *outcome) held() (n int) {
	for _, w := range o.waits {
		if w > 0 {
			n++
		}
	}
	return n
}

// peak returns the most instants in any window.
func peak(instants []throttle.Instant, window time.Duration) (most int) {
	first := 0
	for i, at := range instants {
		for at.Sub(instants[first]) >= window {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}

// sorted returns the waits, the shortest first.
func (o *outcome) sorted() []time.Duration { return slices.Sorted(slices.Values(o.waits)) }
