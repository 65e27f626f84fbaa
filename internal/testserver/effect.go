package testserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// pieces is the number of writes of a slow body.
const pieces = 16

// standsBefore reports whether the fault comes before the limits.
func (f *Fault) standsBefore() bool { return f != nil && f.Do < SlowHeaders }

// strike applies a fault that comes before the limits.
func (f *Fault) strike(w http.ResponseWriter, r *http.Request) {
	switch f.Do {
	case Hang:
		f.hang(r)
	case CloseReused:
		wireOf(r).Close()
		panic(http.ErrAbortHandler)
	case ResetEarly:
		pause(r.Context(), f.Delay)
		wireOf(r).reset()
		panic(http.ErrAbortHandler)
	default:
		pause(r.Context(), f.Delay)
		f.header(w, f.Size)
		w.WriteHeader(f.status(http.StatusTooManyRequests))
		w.Write(filler(f.Size))
	}
}

// answer answers a granted request. Next gives the ordinary answer.
func (f *Fault) answer(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if f == nil {
		next.ServeHTTP(w, r)
		return
	}
	switch f.Do {
	case SlowHeaders:
		pause(r.Context(), f.Delay)
		next.ServeHTTP(w, r)
	case SlowBody:
		f.slowBody(w, r)
	case ResetMidBody:
		f.resetMidBody(w, r)
	case CloseAfter:
		f.closeAfter(w, r, next)
	}
}

// hang sends nothing, and then ends the connection.
func (f *Fault) hang(r *http.Request) {
	// The server detects that the client left only once the body is read.
	io.Copy(io.Discard, r.Body)
	if f.Delay > 0 {
		pause(r.Context(), f.Delay)
	} else {
		<-r.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

// slowBody sends the body in pieces, with a delay after each but the last.
func (f *Fault) slowBody(w http.ResponseWriter, r *http.Request) {
	body := filler(f.size())
	f.header(w, len(body))
	w.WriteHeader(f.status(http.StatusOK))
	size := max(1, (len(body)+pieces-1)/pieces)
	for len(body) > 0 {
		n := min(size, len(body))
		w.Write(body[:n])
		http.NewResponseController(w).Flush()
		if body = body[n:]; len(body) > 0 {
			pause(r.Context(), f.Delay)
		}
	}
}

// resetMidBody promises a body, sends half of it, and resets the connection.
func (f *Fault) resetMidBody(w http.ResponseWriter, r *http.Request) {
	f.header(w, f.size())
	w.WriteHeader(f.status(http.StatusOK))
	w.Write(filler(f.size() / 2))
	http.NewResponseController(w).Flush()
	wireOf(r).reset()
	panic(http.ErrAbortHandler)
}

// closeAfter answers, and then closes the connection. The answer has its length
// in its header, so that the client has all of it although the connection ends.
func (f *Fault) closeAfter(w http.ResponseWriter, r *http.Request, next http.Handler) {
	held := &heldAnswer{ResponseWriter: w, status: http.StatusOK}
	next.ServeHTTP(held, r)
	f.header(w, held.body.Len())
	w.WriteHeader(held.status)
	w.Write(held.body.Bytes())
	http.NewResponseController(w).Flush()
	wireOf(r).Close()
	panic(http.ErrAbortHandler)
}

// header sets the fault's fields and the length of the body.
func (f *Fault) header(w http.ResponseWriter, size int) {
	w.Header().Set("Content-Length", strconv.Itoa(size))
	for field, values := range f.Header {
		w.Header()[http.CanonicalHeaderKey(field)] = values
	}
}

// A heldAnswer keeps an answer back until its length is known.
type heldAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (h *heldAnswer) WriteHeader(status int)      { h.status = status }
func (h *heldAnswer) Write(p []byte) (int, error) { return h.body.Write(p) }

// pause waits for d or until the request is over.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// filler returns a body of size bytes.
func filler(size int) []byte { return bytes.Repeat([]byte("."), size) }
