package redistest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/needs"
)

// A Proxy relays TCP connections to a target and does to them what it is
// told. It begins with Pass; each of Pass, Refuse, BlackHoleSYN, Swallow,
// Delay, Cut, CutNext and Flap takes the place of the one before, for present
// and for new connections. Its methods are safe for concurrent use.
type Proxy struct {
	tb     testing.TB
	addr   string
	target string

	turn sync.Mutex // one change at a time
	door door
	flap *flap

	ctx    context.Context // ends with the proxy
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	fault   fault
	links   map[*link]bool
	traffic Traffic
}

// NewProxy listens on a free port of 127.0.0.1 for connections to the target,
// a host and port. A client is let in before the target is asked, and reset
// where the target refuses. The proxy ends with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		tb: tb, target: target, ctx: ctx, cancel: cancel,
		fault: pass{}, links: make(map[*link]bool),
	}
	tb.Cleanup(p.end)
	// Somebody else may be quicker to take a port that was free.
	for range 5 {
		p.addr = net.JoinHostPort(loopback, strconv.Itoa(freePort(tb)))
		if p.door.set(opened, p.addr, p.admit) == nil {
			break
		}
	}
	p.Pass()
	return p
}

// Addr returns the host and port at which clients reach the proxy.
func (p *Proxy) Addr() string { return p.addr }

// Pass relays all as it comes.
func (p *Proxy) Pass() {
	p.tb.Helper()
	p.change(opened, pass{})
}

// Refuse closes the listener. Connections that were let in go on; for a server
// that is gone, Drop them.
func (p *Proxy) Refuse() {
	p.tb.Helper()
	p.change(closed, pass{})
}

// BlackHoleSYN lets no connection be made: the kernel drops what would open
// one, and the client sends it again after 1, 3, 7 ... seconds. Connections
// that were let in go on. The test is skipped where this cannot be had, which
// is everywhere but on Linux.
func (p *Proxy) BlackHoleSYN() {
	p.tb.Helper()
	p.change(filled, pass{})
}

// Swallow accepts connections and passes requests on, but no replies. A
// connection that lost a reply stays silent for good, the end of the stream
// included.
func (p *Proxy) Swallow() {
	p.tb.Helper()
	p.change(opened, swallow{})
}

// Delay holds each reply back for d. Replies do not wait for one another.
func (p *Proxy) Delay(d time.Duration) {
	p.tb.Helper()
	p.change(opened, delay(d))
}

// Cut ends each connection when n bytes of replies have passed it from now
// on. With zero it ends where a reply would begin.
func (p *Proxy) Cut(n int, end End) {
	p.tb.Helper()
	p.change(opened, &cut{after: n, end: end, seen: make(map[*link]int)})
}

// CutNext does as Cut, but only to the connection on which a reply comes
// next, and then passes all.
func (p *Proxy) CutNext(n int, end End) {
	p.tb.Helper()
	p.change(opened, &cut{after: n, end: end, seen: make(map[*link]int), next: true})
}

// Drop closes the connections that there are.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Traffic counts what went through a [Proxy].
type Traffic struct {
	Accepted int   // connections since the start
	Open     int   // connections now
	ToServer int64 // bytes that the clients sent
	ToClient int64 // bytes that the clients were sent
}

// Traffic returns the counts up to now.
func (p *Proxy) Traffic() Traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.traffic
	t.Open = len(p.links)
	return t
}

// change ends the flapping and puts the door and the fault in place.
func (p *Proxy) change(to state, f fault) {
	p.tb.Helper()
	p.turn.Lock()
	defer p.turn.Unlock()
	p.flap.stop()
	p.flap = nil
	p.apply(to, f)
}

// apply is called in turn, or by the flap that has the turn.
func (p *Proxy) apply(to state, f fault) {
	p.tb.Helper()
	if p.ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	p.fault = f
	p.mu.Unlock()
	err := p.door.set(to, p.addr, p.admit)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		needs.Lacks(p.tb, "a listener that is held shut: "+err.Error())
	case err != nil:
		p.tb.Errorf("redistest: proxy: %v", err)
	}
}

// admit begins to relay a connection.
func (p *Proxy) admit(client *net.TCPConn) {
	l := &link{proxy: p, client: client}
	l.ctx, l.cancel = context.WithCancel(p.ctx)
	p.mu.Lock()
	p.traffic.Accepted++
	p.links[l] = true
	p.mu.Unlock()
	p.wg.Go(l.run)
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) end() {
	p.change(closed, pass{})
	p.cancel()
	p.Drop()
	p.wg.Wait()
}
