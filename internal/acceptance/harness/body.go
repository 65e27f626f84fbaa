package harness

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A CountedBody is a request body that counts how often it is closed.
type CountedBody struct {
	io.Reader
	Closes atomic.Int32
	once   sync.Once
	Closed chan struct{} // nil: nobody waits for it
}

// NewCountedBody returns a body of a text.
func NewCountedBody(text string) *CountedBody {
	return &CountedBody{Reader: strings.NewReader(text), Closed: make(chan struct{})}
}

// Close counts.
func (b *CountedBody) Close() error {
	b.Closes.Add(1)
	b.once.Do(func() {
		if b.Closed != nil {
			close(b.Closed)
		}
	})
	return nil
}

// ErrAny stands for an error that has no name.
var ErrAny = errors.New("any error")

// Spend takes the one permit that the limits have at hand.
func (r *Rig) Spend() { r.Want("first GET", r.Get(r.Context(), "first"), 200) }

// Waiting returns how many stand in line.
func (r *Rig) Waiting() (n int) {
	for _, lane := range r.Transport.Snapshot() {
		n += lane.Waiting
	}
	return n
}

// Within returns what gives a request a deadline.
func Within(d time.Duration) func(*Rig, *http.Request) *http.Request {
	return func(r *Rig, req *http.Request) *http.Request {
		ctx, cancel := context.WithTimeout(req.Context(), d)
		r.Cleanup(cancel)
		return req.WithContext(ctx)
	}
}

// ClosesBody returns a base that does with the body what its contract says.
func ClosesBody(resp *http.Response, err error) http.RoundTripper {
	return BaseFunc(func(req *http.Request) (*http.Response, error) {
		req.Body.Close()
		return resp, err
	})
}

// A ClosedBody counts how often it is closed.
type ClosedBody struct {
	io.Reader
	Closed *int
}

// Close counts.
func (b ClosedBody) Close() error { *b.Closed++; return nil }
