package testserver

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// A wire is one connection as the server sees it, below TLS. Under another server a handler's wire
// is nil, and the connection is unknown.
type wire struct {
	net.Conn
	wires    *wires
	id       int // its number at the server, from 1
	requests atomic.Int64
}

// reset closes the connection so that the client sees a reset instead of an end.
func (w *wire) reset() {
	if w == nil {
		return
	}
	switch conn := w.Conn.(type) {
	case *net.TCPConn:
		conn.SetLinger(0)
	case *pipeEnd:
		conn.broken.Store(true)
	}
	w.Close()
}

// Close closes the connection without sending anything.
func (w *wire) Close() error {
	if w == nil {
		return nil
	}
	w.wires.drop(w)
	return w.Conn.Close()
}

// addRequest counts a request on the connection.
func (w *wire) addRequest() {
	if w != nil {
		w.requests.Add(1)
	}
}

// reused reports whether the connection carries more than its first request.
func (w *wire) reused() bool { return w != nil && w.requests.Load() > 1 }

// number returns the number of the connection at the server, and zero if it is
// not known.
func (w *wire) number() int {
	if w == nil {
		return 0
	}
	return w.id
}

type wireKey struct{}

// withWire is the ConnContext of the servers: it puts the wire into the
// contexts of requests.
func withWire(ctx context.Context, conn net.Conn) context.Context {
	if tls, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tls.NetConn()
	}
	return context.WithValue(ctx, wireKey{}, conn)
}

// wireOf returns the wire of a request.
func wireOf(r *http.Request) *wire {
	w, _ := r.Context().Value(wireKey{}).(*wire)
	return w
}

// A wires is a listener that knows its open connections, including those that a handler has
// hijacked.
type wires struct {
	net.Listener

	mu     sync.Mutex
	open   map[*wire]bool // nil after closeAll
	opened int
}

func newWires(l net.Listener) *wires { return &wires{Listener: l, open: make(map[*wire]bool)} }

// Accept returns the next connection as a wire.
func (ws *wires) Accept() (net.Conn, error) {
	conn, err := ws.Listener.Accept()
	if err != nil {
		return nil, err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open == nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	ws.opened++
	w := &wire{Conn: conn, wires: ws, id: ws.opened}
	ws.open[w] = true
	return w, nil
}

func (ws *wires) drop(w *wire) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.open, w)
}

// count returns how many connections there have been.
func (ws *wires) count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.opened
}

// closeAll closes the listener and every connection.
func (ws *wires) closeAll() {
	_ = ws.Listener.Close() //nolint:staticcheck // ws.Close is a different method
	ws.mu.Lock()
	open := ws.open
	ws.open = nil
	ws.mu.Unlock()
	for w := range open {
		w.Close()
	}
}
