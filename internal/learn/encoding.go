package learn

import (
	"encoding/json"
	"errors"
	"slices"
)

const (
	encodingVersion = 1        // changes with the meaning of a field: an unknown new field is ignored, or begins with zero
	mostEncoded     = 32 << 10 // bytes of an encoded State: one takes 1,500 to 8,000
)

// An encoded is a State as sent, without the unused ceilings.
type encoded struct {
	Version int
	*State
	Ceilings []Ceiling
}

// Encode returns the state as JSON, or nil if it contains an invalid number.
func (s *State) Encode() []byte {
	last := len(s.Ceilings)
	for last > 0 && s.Ceilings[last-1] == (Ceiling{}) {
		last--
	}
	b, _ := json.Marshal(encoded{encodingVersion, s, s.Ceilings[:last]}) // nil for an invalid number
	return b
}

// Decode reads what Encode wrote. If it returns an error, s is unchanged.
func (s *State) Decode(b []byte) error {
	var read State
	e := encoded{State: &read}
	if len(b) > mostEncoded || json.Unmarshal(b, &e) != nil || e.Version != encodingVersion ||
		copy(read.Ceilings[:], e.Ceilings) < len(e.Ceilings) || !read.sane() {
		return errors.New("learn: no state of this version")
	}
	*s = read
	return nil
}

// sane reports whether a decoded state, whatever its source, makes the learner neither panic nor hold calls forever.
func (s *State) sane() bool {
	within := func(most float64, values ...float64) bool {
		return !slices.ContainsFunc(values, func(v float64) bool { return !(v >= 0 && v <= most) })
	}
	return s.Mode <= Rate && within(longest, s.RTT, s.Took, s.Gap, s.P, s.G, s.Pause, s.Block, s.Spent) &&
		within(AnyRate, s.R, s.W, s.Whole, s.RefR, s.Cap, s.Ceil, s.B, s.Burst) && within(farthestX, s.X) && within(1, s.U, s.Early, s.Slack) &&
		(s.Mode != Rate || s.R > 0 && s.W > 0 || s.Episode) && s.Marked >= 0 && s.Cut >= 0 &&
		!slices.ContainsFunc(s.Ceilings[:], func(t Ceiling) bool { return t.Turns < 0 || t.Turns > mostTurns }) && within(AnyRate, s.Before.Rate) && within(longest, s.Before.Gap)
}
