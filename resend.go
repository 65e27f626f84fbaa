package weir

import "fmt"

// What net/http may send again behind one attempt.
const (
	// maxStreamResends bounds the resends over HTTP/2. A server that answered
	// GOAWAY or REFUSED_STREAM to everything was sent 1,970 requests in 4 s.
	maxStreamResends = 2
	// maxDeadResends bounds the resends on connections found dead. The last one
	// goes over a new connection, after which net/http does not send again.
	maxDeadResends = 8
)

// A ResendError says that an attempt was stopped, because net/http had sent it
// again by itself as often as it may.
type ResendError struct {
	Sent int // requests on the wire since the last response began, if one did
}

// Error returns the cause with its number.
func (e *ResendError) Error() string {
	return fmt.Sprintf("stopped after %d sends of one attempt, none of them answered", e.Sent)
}

// Retryable returns true: another attempt may be sent.
func (e *ResendError) Retryable() bool { return true }

// getConn is called before each send, and stops those beyond the bound.
func (a *attempt) getConn(string) {
	unheard, http2 := int(a.unheard.Load()), a.server.http2(a.secure)
	switch resends := maxDeadResends; {
	case unheard == 0:
	case http2 && unheard > maxStreamResends, unheard > resends:
		a.stop(&ResendError{Sent: unheard})
	case !http2 && unheard == resends:
		// Connection after connection is dead. The idle ones are of no use any
		// more; a new one succeeds if anything can.
		if c, ok := a.t.base.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// wroteHeaders is called for each request on the wire. All but the first are
// charged to the lane, because they did not wait in line.
func (a *attempt) wroteHeaders() {
	a.unheard.Add(1)
	if a.written.Add(1) > 1 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.lane.Charge(a.departure)
	}
}

// responded is called when a response begins. What is sent after that is no resend
// of net/http: the base itself authenticates, follows a redirect or tries
// again. Such requests are charged, and not bounded.
func (a *attempt) responded() { a.unheard.Store(0) }
