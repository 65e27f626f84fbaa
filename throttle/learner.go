package throttle

import "time"

// A Learner is what one process knows of the limit of a lane's vendor, if
// several processes share the lane. It is the state machine of a replicated
// log. The lane's store keeps what the processes tell in one order, and each
// process hears all of it in that order, so all of them know the same. The
// store does not read what is told.
//
// A [Sharer] makes one call at a time, on any goroutine, and holds no lock that
// its own methods take.
type Learner interface {
	// Tell returns what this process has to tell since the last Tell.
	Tell(v View) Word

	// Hear takes in what one of the processes told, this one included. Ordinal is
	// the latest departure that the store had let go when it took the message, and
	// at is when that was, by the store's clock.
	Hear(told []byte, ordinal int64, at Instant)

	// Learned returns everything that was heard so far, in at most 8 KiB, for a
	// process that comes later. That process calls Restore. If Restore cannot read
	// it, nothing was learned.
	Learned() []byte
	Restore(learned []byte)

	// Pace returns what holds for all processes together.
	Pace(v View) Pace
}

// A View is the state of a lane in its store, as this process was told it last.
type View struct {
	Now      Instant       // by the store's clock
	Ahead    time.Duration // how far the store's clock is ahead of the lane's
	Ordinal  int64         // of the latest departure that the store let go
	Last     Instant       // when that departure is; it may be in the future
	Replicas int           // processes that share the lane, this one included
	Lapsed   []Span        // departures that became known, since the last Tell, not to take place
}

// A Span is a range of departures, by their ordinals.
type Span struct{ First, Count int64 }

// A Word is what a process tells the others. The zero value says nothing.
type Word struct {
	Told  []byte
	Free  int  // departures since the last Word that took no permit of the store
	Rouse bool // permits that any process holds are void, and all are to hear it at once
}

// A Pace is what holds for the departures of all processes together. With the
// zero value they depart as they come.
type Pace struct {
	Counted  bool          // each departure takes a permit of the store, which counts them, even if nothing holds it
	Interval time.Duration // from each departure to the next; zero: none
	Hold     Instant       // nothing departs before it, by the store's clock
	Alone    bool          // departures after the ordinal Since go one by one, a second apart
	Since    int64
	Keep     time.Duration // how long the store keeps what was learned if nobody calls
}

// A Sharer is a [Remote] limiter whose store lets the processes that share a
// lane learn together. The [Pace] of the process that has heard most is
// enforced in the same decision as the limits, without another call to the
// store.
type Sharer interface {
	// Share makes the lane learn through the store. It is called once, before the
	// limiter is used.
	Share(l Learner)

	// Hurry says that the learner has something to tell that must not wait for the
	// next call.
	Hurry()

	// Ordinal returns the number of the departure whose permit Take spent last,
	// counted from 1 by the store. Zero means that the permit was not the store's.
	Ordinal() int64
}
