package throttle

import "time"

// A Learner is what a process knows of the limit of a lane's vendor, where several
// processes share the lane: the machine of a replicated log. The store of the lane
// keeps what they tell in one order for all of them. Each of them hears all of it in
// that order, and so knows the same. To the store it is bytes.
//
// A [Sharer] calls it one call at a time, from any goroutine, and holds no lock
// that its own methods take.
type Learner interface {
	// Tell returns what this process has to tell since the last Tell.
	Tell(v View) Word

	// Hear takes in what one of the processes told, this one too: ordinal is the
	// latest that the store had given when it took it, and at is when that was, by
	// the store's clock.
	Hear(told []byte, ordinal int64, at Instant)

	// Learned returns all that was heard so far, for who comes later: no more
	// than 8 KiB. Restore goes on with it. What it cannot read is nothing learned.
	Learned() []byte
	Restore(learned []byte)

	// Pace returns what holds for all of them together.
	Pace(v View) Pace
}

// A View is how a lane stands in its store, as this process was told last.
type View struct {
	Now      Instant       // by the store's clock
	Ahead    time.Duration // of that clock over the lane's
	Ordinal  int64         // of the latest departure that the store let go
	Last     Instant       // when that is; it may be to come
	Replicas int           // processes that share the lane, this one too
	Lapsed   []Span        // departures that will not take place, if any became known since the last Tell
}

// A Span is departures by their ordinals.
type Span struct{ First, Count int64 }

// A Word is what a process tells the others. The zero value says nothing.
type Word struct {
	Told  []byte
	Free  int  // departures since the last Word that took no permit of the store
	Rouse bool // permits that anybody holds are void, and all are to hear it at once
}

// A Pace is what holds for the departures of all processes together. The zero value
// says that they leave as they come.
type Pace struct {
	Counted  bool          // each departure takes a permit of the store, which counts them, even if nothing holds
	Interval time.Duration // from each departure to the next; zero: none
	Hold     Instant       // nothing departs before it, by the store's clock
	Alone    bool          // those after the ordinal Since go one by one, each a second after the last
	Since    int64
	Keep     time.Duration // for how long what was learned is to be kept if nobody calls
}

// A Sharer is a [Remote] limiter whose store has the processes that share a lane
// learn together. What holds of the [Pace] of who has heard most is enforced in the
// same decision as the limits, with no call more.
type Sharer interface {
	// Share has the lane learn through the store. It is called once, before the
	// limiter is used.
	Share(l Learner)

	// Hurry says that the learner has something to tell that does not wait for a
	// call that goes anyway.
	Hurry()

	// Ordinal returns which departure of the lane the permit was for that Take
	// spent last, counted from 1 by the store; zero: it took none of the store's.
	Ordinal() int64
}
