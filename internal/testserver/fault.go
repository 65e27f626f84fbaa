package testserver

import (
	"net/http"
	"time"
)

// A Fault says which requests a [Vendor] breaks, and how. A request is hit if
// it lies within all bounds; a bound of zero bounds nothing.
type Fault struct {
	From  time.Duration            // since the vendor's start, inclusive
	Until time.Duration            // since the vendor's start, exclusive; zero: no end
	First int                      // number of the first request, the vendor's first being 1
	Last  int                      // number of the last, inclusive; zero: no last
	Every int                      // of those, the first and every n-th after it; zero: all of them
	Match func(*http.Request) bool // reports whether the fault may hit a request; nil: any

	Do     Effect
	Status int           // of Answer; zero: 429. Of ResetMidBody and SlowBody; zero: 200
	Header http.Header   // added to the answer, such as Retry-After; nil: nothing
	Size   int           // bytes of the body; zero: 0 for Answer, 64 KiB for SlowBody and ResetMidBody
	Delay  time.Duration // see the Effects
}

// An Effect is what a [Fault] does.
type Effect uint8

// The effects. The first four come before the limits and spend no permit. The others act on granted
// requests; a refused request is refused as usual. Over HTTP/2, an effect that ends a connection
// ends all of its streams.
const (
	Answer      Effect = iota // answer with Status, Header and a body of Size bytes, after Delay
	ResetEarly                // reset the connection before any header, after Delay
	Hang                      // send nothing for Delay, then close; zero: until the client leaves or the server closes
	CloseReused               // close the connection without an answer unless this is its first request

	SlowHeaders  // answer as usual after Delay
	SlowBody     // send a body of Size bytes in 16 pieces, Delay after each but the last
	ResetMidBody // promise a body of Size bytes, reset the connection after half of it
	CloseAfter   // answer as usual, then close the connection without a notice
)

// matches reports whether the fault may hit the request.
func (f *Fault) matches(r *http.Request) bool {
	return (f.Do != CloseReused || wireOf(r).reused()) && (f.Match == nil || f.Match(r))
}

// covers reports whether a request with that number and instant is hit.
func (f *Fault) covers(number int, at time.Duration) bool {
	first := max(f.First, 1)
	return at >= f.From && (f.Until == 0 || at < f.Until) &&
		number >= first && (f.Last == 0 || number <= f.Last) &&
		(f.Every == 0 || (number-first)%f.Every == 0)
}

// status returns the status of the answer; zero is its default.
func (f *Fault) status(zero int) int {
	if f.Status == 0 {
		return zero
	}
	return f.Status
}

// size returns the bytes of a body that is broken or slow.
func (f *Fault) size() int {
	if f.Size == 0 {
		return 64 << 10
	}
	return f.Size
}
