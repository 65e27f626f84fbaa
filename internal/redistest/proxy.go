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

// A Proxy relays TCP connections to a target, and applies faults to them. It begins with Pass. Each
// of Pass, Refuse, BlackHoleSYN, Swallow, Delay, Cut, CutNext and Flap replaces the previous one,
// for existing and new connections. Its methods are safe for concurrent use.
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

// NewProxy listens on a free port of 127.0.0.1 for connections to the target, a host and port. A
// client is accepted before the target is dialled, and reset if the target refuses. The proxy ends
// with the test.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		tb: tb, target: target, ctx: ctx, cancel: cancel,
		fault: pass{}, links: make(map[*link]bool),
	}
	tb.Cleanup(p.end)
	// Another program may be quicker to take a free port.
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

// Pass relays everything unchanged.
func (p *Proxy) Pass() {
	p.tb.Helper()
	p.change(opened, pass{})
}

// Refuse closes the listener. Accepted connections stay open; Drop closes them, as a server that is
// down would.
func (p *Proxy) Refuse() {
	p.tb.Helper()
	p.change(closed, pass{})
}

// BlackHoleSYN prevents connections: the kernel drops the packets that would open one, and the
// client resends them after 1, 3, 7 ... seconds. Accepted connections stay open. The test is
// skipped on systems other than Linux.
func (p *Proxy) BlackHoleSYN() {
	p.tb.Helper()
	p.change(filled, pass{})
}

// Swallow accepts connections and passes requests on, but no replies. A connection that lost a
// reply stays silent, even at the end of the stream.
func (p *Proxy) Swallow() {
	p.tb.Helper()
	p.change(opened, swallow{})
}

// Delay delays each reply by d. Replies do not wait for one another.
func (p *Proxy) Delay(d time.Duration) {
	p.tb.Helper()
	p.change(opened, delay(d))
}

// Cut ends each connection after n more bytes of replies. With zero it ends where a reply would
// begin.
func (p *Proxy) Cut(n int, end End) {
	p.tb.Helper()
	p.change(opened, &cut{after: n, end: end, seen: make(map[*link]int)})
}

// CutNext does as Cut, but only to the connection with the next reply, and then passes everything.
func (p *Proxy) CutNext(n int, end End) {
	p.tb.Helper()
	p.change(opened, &cut{after: n, end: end, seen: make(map[*link]int), next: true})
}

// Drop closes the existing connections.
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
	ToClient int64 // bytes sent to the clients
}

// Traffic returns the counts up to now.
func (p *Proxy) Traffic() Traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.traffic
	t.Open = len(p.links)
	return t
}

// change ends the flapping and sets the door and the fault.
func (p *Proxy) change(to state, f fault) {
	p.tb.Helper()
	p.turn.Lock()
	defer p.turn.Unlock()
	p.flap.stop()
	p.flap = nil
	p.apply(to, f)
}

// apply is called under turn, or by the flap that holds it.
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
