package weirtest

import (
	"net/http"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A Fault breaks some of a [Vendor]'s answers. The first one set of Status, Reset
// and Hang acts, before the limits, and spends no permit. If no one is set, the
// answer is the usual one, after Delay if the limits grant the request.
type Fault struct {
	First int // number of the first request that is hit, counted from 1; zero: 1
	Last  int // number of the last one, inclusive; zero: no end

	Status int           // the answer's status, such as 429; zero: no such answer
	Header http.Header   // added to the answer of Status, such as Retry-After; nil: nothing
	Reset  bool          // resets the connection
	Hang   bool          // sends nothing for Delay, or until the client leaves if that is zero
	Delay  time.Duration // comes first, but for a refusal by the limits; zero: none
}

// toServer returns the fault as the server has it.
func (f Fault) toServer() testserver.Fault {
	to := testserver.Fault{First: f.First, Last: f.Last, Header: f.Header, Delay: f.Delay, Do: testserver.SlowHeaders}
	switch {
	case f.Status != 0:
		to.Do, to.Status = testserver.Answer, f.Status
	case f.Reset:
		to.Do = testserver.ResetEarly
	case f.Hang:
		to.Do = testserver.Hang
	}
	return to
}
