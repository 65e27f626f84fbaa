package shaping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/internal/readable"
	"github.com/weirgo/weir/throttle"
)

// The reasons for which a queue rejects a caller. The methods that wait
// return an [*Error], which matches one of them.
var (
	// ErrDeadline says that the wait would end, or ended, after the caller's
	// deadline or the queue's longest wait. It also matches
	// [context.DeadlineExceeded].
	ErrDeadline error = deadlineError{"wait ends after the deadline"}
	// ErrQueueFull says that the line is full, or the expected wait longer than
	// MaxForecast, and that this caller was chosen: see [Queue].Overflow.
	ErrQueueFull = errors.New("queue is full")
	// ErrClosed says that the queue was closed.
	ErrClosed = errors.New("queue is closed")
)

// errMaxWait is ErrDeadline for a caller whose longest wait ends before its deadline, or
// who has no deadline.
var errMaxWait error = deadlineError{"wait exceeds MaxWait"}

// A deadlineError matches ErrDeadline and context.DeadlineExceeded, and is a timeout for
// package net.
type deadlineError struct{ text string }

func (e deadlineError) Error() string { return e.text }
func (deadlineError) Timeout() bool   { return true }
func (deadlineError) Is(target error) bool {
	return target == ErrDeadline || target == context.DeadlineExceeded
}

// An Error says why a caller was rejected, at once or out of the line. It
// unwraps to [ErrDeadline], [ErrQueueFull] or [ErrClosed].
type Error struct {
	Err      error           // the cause
	Wait     time.Duration   // how long the wait would have been at least; zero if that is unknown
	Forecast time.Duration   // expected wait if no other caller came or left: a guess; zero if there is none
	Waiting  int             // other callers in line
	Before   int             // of those, how many would have departed before this one
	Lane     string          // the name of the [Roster] for which the caller waited; "": the queue needs one limiter
	Limit    string          // the name of the limit that held the caller, or its unit and place, such as requests-0; "" if none did
	Reason   throttle.Reason // what the caller would have waited for; "" if nothing held it
}

// Error returns the cause with its numbers.
func (e *Error) Error() string {
	switch {
	case e.Wait > 0 && e.Limit != "":
		return fmt.Sprintf("shaping: wait of %v or more for %s of limit %q, %d in line: %v", readable.Wait(e.Wait), e.Reason, e.Limit, e.Waiting, e.Err)
	case e.Wait > 0:
		return fmt.Sprintf("shaping: wait of %v or more for %s, %d in line: %v", readable.Wait(e.Wait), e.Reason, e.Waiting, e.Err)
	default:
		return fmt.Sprintf("shaping: %d in line: %v", e.Waiting, e.Err)
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the cause is [ErrDeadline].
func (e *Error) Timeout() bool { return errors.Is(e.Err, ErrDeadline) }
