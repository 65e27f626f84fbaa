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

// A CountedBody is a request body that counts its Close calls.
type CountedBody struct {
	io.Reader
	Closes atomic.Int32
	once   sync.Once
	Closed chan struct{} // nil: not signalled
}

// NewCountedBody returns a body with a text.
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

// ErrAny stands for any error without a type.
var ErrAny = errors.New("any error")

// Spend takes the only permit of the limits.
func (r *Rig) Spend() { r.Want("first GET", r.Get(r.Context(), "first"), 200) }

// Waiting returns how many calls wait in line.
func (r *Rig) Waiting() (n int) {
	for _, lane := range r.Transport.Snapshot() {
		n += lane.Waiting
	}
	return n
}

// Within returns a function that gives a request a deadline.
func Within(d time.Duration) func(*Rig, *http.Request) *http.Request {
	return func(r *Rig, req *http.Request) *http.Request {
		ctx, cancel := context.WithTimeout(req.Context(), d)
		r.Cleanup(cancel)
		return req.WithContext(ctx)
	}
}

// ClosesBody returns a base that closes the body as its contract requires.
func ClosesBody(resp *http.Response, err error) http.RoundTripper {
	return BaseFunc(func(req *http.Request) (*http.Response, error) {
		req.Body.Close()
		return resp, err
	})
}

// A ClosedBody counts its Close calls.
type ClosedBody struct {
	io.Reader
	Closed *int
}

// Close counts.
func (b ClosedBody) Close() error { *b.Closed++; return nil }
