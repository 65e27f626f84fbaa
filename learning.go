package weir

// Learning says whether a lane learns its vendor's limit from the answers.
type Learning uint8

// The ways to learn.
const (
	// LearnOn finds the limit of a lane for which none is configured, or too high
	// a one, and holds calls to it. A window that the vendor tells is spent as
	// calls come.
	LearnOn Learning = iota
	// LearnSpread is LearnOn, but spreads calls over what is left of such a window.
	LearnSpread
	// LearnOff learns nothing: a refusal pauses the lane for the time it tells,
	// and slows the configured limits for a while.
	LearnOff
)
