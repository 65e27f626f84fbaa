package testserver

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// A recorder notes the status in the vendor's record before the client can see
// it.
type recorder struct {
	http.ResponseWriter
	call     *call
	noted    bool
	hijacked bool
}

// Unwrap gives an http.ResponseController the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	r.note(status)
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.note(http.StatusOK)
	return r.ResponseWriter.Write(p)
}

// Flush sends what was written so far.
func (r *recorder) Flush() { r.FlushError() }

// FlushError is Flush as an http.ResponseController calls it.
func (r *recorder) FlushError() error {
	r.note(http.StatusOK)
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// Hijack gives the connection to the handler. The handler writes a status of
// its own, which the recorder does not see.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	r.hijacked = err == nil
	return conn, rw, err
}

// finish notes the 200 that net/http sends if the handler wrote nothing.
func (r *recorder) finish() {
	if !r.hijacked {
		r.note(http.StatusOK)
	}
}

// note notes the first status that is not an interim one.
func (r *recorder) note(status int) {
	interim := status < 200 && status != http.StatusSwitchingProtocols
	if interim || r.noted {
		return
	}
	r.noted = true
	v := r.call.vendor
	v.mu.Lock()
	defer v.mu.Unlock()
	a := &v.arrivals[r.call.index]
	a.Status, a.Answered = status, time.Since(v.start)
	if status >= 400 || !a.Granted {
		a.Header = r.Header().Clone()
	}
}
