package weir

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/readable"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// The causes that packages throttle and shaping give, under names of this package.
var (
	ErrExceedsBurst = throttle.ErrExceedsBurst
	ErrQueueFull    = shaping.ErrQueueFull
	ErrDeadline     = shaping.ErrDeadline
	ErrClosed       = shaping.ErrClosed
)

// An Error says why a request got no response. It unwraps to the cause, which
// is one of these, the context's error, or the network's:
//
//   - [ErrExceedsBurst]: it costs more than a limit ever grants;
//   - [ErrQueueFull]: too many requests wait;
//   - [ErrDeadline], which matches context.DeadlineExceeded: it would
//     wait too long;
//   - [ErrClosed]: the Transport was closed;
//   - [ErrPaused]: the server closed the lane.
//
// Its text carries no URL.
type Error struct {
	Lane     string          // the lane's key
	Reason   throttle.Reason // what held the request back in this client: the rate of a limit, a pause that the server asked for, ...; "" if nothing did
	Limit    string          // the limit that held the request: its name or, if it has none, the limit as throttle.ParseLimit reads it; "" if none did
	Wait     time.Duration   // least wait; zero if unknown, or not the cause
	Forecast time.Duration   // expected wait behind the requests before it: a guess; zero: none
	Before   int             // requests that were before it in line
	Attempts int             // that were sent
	Elapsed  time.Duration   // since the request arrived in its lane
	Status   int             // of the last response discarded for another attempt; zero: none
	Header   http.Header     // of that response
	Err      error           // the cause

	waited  waited           // with the label of its limit
	dialect *headers.Dialect // of the server; nil: no lane, or the default
}

// Error returns the cause with its numbers. It says whether this client's own
// limiter or the network was the cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "weir: lane %q", e.Lane)
	switch {
	case e.asked():
		b.WriteString(": held back by this client, because the server asked for a pause")
	case e.own():
		b.WriteString(": held back by this client's own limiter, not by the server")
	}
	if e.Wait > 0 {
		fmt.Fprintf(&b, ": wait of %v or more", readable.Wait(e.Wait))
	}
	if e.Wait > 0 && e.Reason != "" {
		fmt.Fprintf(&b, " for %s", e.Reason)
	}
	if e.Limit != "" {
		fmt.Fprintf(&b, ": limit %q", e.Limit)
	}
	if e.Before > 0 {
		fmt.Fprintf(&b, ": %d before it in line", e.Before)
	}
	if e.Before > 0 && e.Forecast > 0 {
		fmt.Fprintf(&b, ", about %v", readable.Wait(e.Forecast))
	}
	if e.Attempts > 0 {
		fmt.Fprintf(&b, ": after %d sent in %v", e.Attempts, readable.Wait(e.Elapsed))
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, ", the last answered %d", e.Status)
	}
	return fmt.Sprintf("%s: %v", b.String(), e.Err)
}

// asked reports whether the request was held back because the server had asked
// for a pause.
func (e *Error) asked() bool {
	return errors.Is(e.Err, ErrPaused) || e.Reason == throttle.ReasonPause && errors.Is(e.Err, shaping.ErrDeadline)
}

// own reports whether the request was held back by this client.
func (e *Error) own() bool {
	for _, cause := range [...]error{throttle.ErrExceedsBurst, shaping.ErrQueueFull, shaping.ErrDeadline, shaping.ErrClosed, ErrPaused} {
		if errors.Is(e.Err, cause) {
			return true
		}
	}
	return false
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a deadline is the cause: the request's own, or one of
// the network.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.Is(e.Err, context.DeadlineExceeded) || errors.As(e.Err, &t) && t.Timeout()
}

// bare returns err without URLs in its text. There may be one for each client
// on the way, if one client is behind another. The chain of errors stays as it
// is.
func bare(err error) error {
	text := bareText(err.Error(), err)
	if text == err.Error() {
		return err
	}
	return &bareError{text, err}
}

// A bareError is an error with another text.
type bareError struct {
	text string
	error
}

// Error returns the text without URLs.
func (e *bareError) Error() string { return e.text }

// Unwrap returns the error.
func (e *bareError) Unwrap() error { return e.error }

// bareText removes from a text what each [url.Error] in the tree of err adds to its cause. It also
// removes the error's URL elsewhere.
func bareText(text string, err error) string {
	u, ok := err.(*url.Error) //nolint:errorlint // the tree is walked here
	if ok {
		text = strings.ReplaceAll(text, u.Error(), u.Err.Error())
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			text = bareText(text, inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			text = bareText(text, inner)
		}
	}
	if ok && u.URL != "" {
		text = strings.ReplaceAll(text, u.URL, "URL")
	}
	return text
}

// ErrPaused is matched by the error for a request whose lane is closed, because
// the server asked for a pause longer than [Transport.MaxPause].
var ErrPaused = lane.ErrPaused
