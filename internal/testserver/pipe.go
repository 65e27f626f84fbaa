package testserver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// pipes is a listener whose connections are in-memory pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// newPipes returns a listener without connections.
func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept returns the server's end of the next pipe.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dialling. Open pipes stay open.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr returns a placeholder address.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

// dial returns the client's end of a new pipe, whatever the address.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := newPipe()
	var err error
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, pipeError("dial", err)
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// A pipeEnd is one end of a pipe that fails as a TCP connection does. Its methods are safe for
// concurrent use.
type pipeEnd struct {
	net.Conn
	broken    *atomic.Bool // the connection was reset; shared by both ends
	closed    atomic.Bool  // this end was closed
	swallowed atomic.Bool  // a write succeeded that the other end will never read
}

func newPipe() (a, b *pipeEnd) {
	connA, connB := net.Pipe()
	broken := new(atomic.Bool)
	return &pipeEnd{Conn: connA, broken: broken}, &pipeEnd{Conn: connB, broken: broken}
}

// Read returns ECONNRESET after a reset by the other end.
func (p *pipeEnd) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if errors.Is(err, io.EOF) && p.broken.Load() {
		err = pipeError("read", syscall.ECONNRESET)
	}
	return n, err
}

// Write succeeds once after the other end has closed, as over TCP because of its buffer. The client
// then learns of the end by reading, and that decides whether net/http resends the request.
func (p *pipeEnd) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	if !errors.Is(err, io.ErrClosedPipe) || p.closed.Load() {
		return n, err
	}
	if p.swallowed.Swap(true) {
		return n, pipeError("write", syscall.EPIPE)
	}
	return len(b), nil
}

// Close closes this end.
func (p *pipeEnd) Close() error {
	p.closed.Store(true)
	return p.Conn.Close()
}

func pipeError(op string, err error) error {
	return &net.OpError{Op: op, Net: "pipe", Addr: pipeAddr{}, Err: err}
}
