package shaping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/internal/readable"
	"github.com/weirgo/weir/throttle"
)

// The reasons for which a queue lets nobody depart. Each is matched by
// [errors.Is] on what the waiting methods return, which is an [*Error].
var (
	// ErrDeadline: the wait would end, or ended, after the caller's deadline
	// or the queue's longest wait. It matches [context.DeadlineExceeded] too.
	ErrDeadline error = deadlineError{}
	// ErrQueueFull: the line is full, or longer than a newcomer may be expected to
	// wait in, and this caller was the one to go: see [Queue].Overflow.
	ErrQueueFull = errors.New("queue is full")
	// ErrClosed: the queue was closed.
	ErrClosed = errors.New("queue is closed")
)

type deadlineError struct{}

func (deadlineError) Error() string        { return "wait ends after the deadline" }
func (deadlineError) Timeout() bool        { return true }
func (deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }

// An Error says why a caller was refused or sent away. It unwraps to
// [ErrDeadline], [ErrQueueFull] or [ErrClosed].
type Error struct {
	Err      error
	Wait     time.Duration   // how long the wait would have been at least; zero where that is unknown
	Forecast time.Duration   // how long it would have been if nobody else had come or left; a guess, zero where there is none
	Waiting  int             // other callers in line
	Before   int             // of those, how many would have gone before this one
	Limit    string          // the name of the limit that held the caller; "" where none did
	Reason   throttle.Reason // what the caller would have waited for; "" where nothing held it
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
