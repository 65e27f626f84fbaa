package weir

import (
	"errors"
	"io"
	"net/http"
	"runtime"
)

// An own is a response of ours, and its body. The body of net/http may hold on to
// the response that it came with. Nobody but the caller holds on to this one, so
// the garbage collector finds it if it is dropped.
type own struct {
	*attempt
	resp   http.Response
	theirs *http.Response // the base sets its Trailer when the body ends
}

// own returns a copy of the response whose flight ends with its body, or when
// the caller drops it.
func (a *attempt) own(theirs *http.Response) *http.Response {
	o := &own{attempt: a, resp: *theirs, theirs: theirs}
	runtime.AddCleanup(o, a.flight.Lose, a.expire)
	o.resp.Body = o
	if conn, writes := theirs.Body.(io.ReadWriteCloser); writes {
		o.resp.Body = duplex{o, conn}
		if theirs.StatusCode == http.StatusSwitchingProtocols {
			o.resp.Body = &upgraded{conn, o}
		}
	}
	return &o.resp
}

// Read implements [io.Reader].
func (o *own) Read(p []byte) (int, error) {
	n, err := o.attempt.Read(p)
	if errors.Is(err, io.EOF) {
		o.resp.Trailer = o.theirs.Trailer
	}
	return n, err
}

// Close implements [io.Closer]. A body that is being closed was not dropped.
func (o *own) Close() error {
	defer runtime.KeepAlive(o)
	return o.attempt.Close()
}

// A duplex is the body of a response that can also be written to.
type duplex struct {
	io.ReadCloser
	io.Writer
}

// An upgraded is a connection that was upgraded. It is in flight until it is
// closed: if its server sends no more, it can still be written to.
type upgraded struct {
	io.ReadWriteCloser
	own *own
}

// Close implements [io.Closer].
func (u *upgraded) Close() error { return u.own.Close() }

// CloseWrite ends what is written, as that of the connection does.
func (u *upgraded) CloseWrite() error {
	if conn, ok := u.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return http.ErrNotSupported
}
