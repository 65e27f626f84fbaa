package weir

// Learning says whether a lane learns its server's limit from the answers. What it
// learns counts requests. A quota that is reported in another unit, such as the tokens
// of a language model, holds nobody before it is spent and refuses: configure a
// limit of that unit, with Transport.Cost.
type Learning uint8

// The ways to learn.
const (
	// LearnOn finds a limit that nobody configured, or that was configured too
	// high, and holds the lane's calls to it. A window that the server reports is
	// spent as calls come.
	LearnOn Learning = iota
	// LearnSpread is LearnOn, but calls are spread evenly over the rest of such a
	// window.
	LearnSpread
	// LearnOff learns nothing. A refusal pauses the lane for the time that it
	// tells; before and after, the configured limits alone pace it. If other
	// processes that share the lane through a store learn, this one sends them its
	// answers and keeps to what they learned.
	LearnOff
)
