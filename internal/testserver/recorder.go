package testserver

import (
	"bufio"
	"net"
	"net/http"
)

// A recorder notes the status in the record before the client can see it.
type recorder struct {
	http.ResponseWriter
	call     *call
	noted    bool
	hijacked bool
}

// Unwrap lets an http.ResponseController through.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	r.note(status)
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.note(http.StatusOK)
	return r.ResponseWriter.Write(p)
}

// Flush sends what is written so far.
func (r *recorder) Flush() { r.FlushError() }

// FlushError is Flush for an http.ResponseController.
func (r *recorder) FlushError() error {
	r.note(http.StatusOK)
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// Hijack leaves the status to the handler, whose words are its own from now on.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	r.hijacked = err == nil
	return conn, rw, err
}

// finish notes the 200 that net/http sends for a handler which wrote nothing.
func (r *recorder) finish() {
	if !r.hijacked {
		r.note(http.StatusOK)
	}
}

func (r *recorder) note(status int) {
	interim := status < 200 && status != http.StatusSwitchingProtocols
	if interim || r.noted {
		return
	}
	r.noted = true
	v := r.call.vendor
	v.mu.Lock()
	defer v.mu.Unlock()
	v.arrivals[r.call.index].Status = status
}
