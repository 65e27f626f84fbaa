package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"time"
)

// A link is one connection through a proxy.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	server net.Conn

	ctx    context.Context // ends with the link
	cancel context.CancelFunc

	silent bool // guarded by proxy.mu: a reply was lost
}

// A chunk is some bytes of a reply on their way to the client.
type chunk struct {
	b   []byte
	due time.Time
	end End // zero: more follows
}

// run relays until either side is gone.
func (l *link) run() {
	defer l.proxy.forget(l)
	defer l.close()
	var d net.Dialer
	server, err := d.DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil {
		l.finish(RST)
		return
	}
	l.server = server
	context.AfterFunc(l.ctx, func() { _ = server.Close() })
	chunks := make(chan chunk, 256)
	var wg sync.WaitGroup
	wg.Go(func() { l.receive(chunks) })
	wg.Go(func() { l.deliver(chunks) })
	l.requests()
	l.close()
	wg.Wait()
}

// requests passes on what the client sends until either side has closed. Bytes that the server no
// longer takes are lost: the client learns of that from the replies.
func (l *link) requests() {
	b := make([]byte, 16<<10)
	for {
		n, err := l.client.Read(b)
		if n > 0 {
			l.proxy.mu.Lock()
			l.proxy.traffic.ToServer += int64(n)
			l.proxy.mu.Unlock()
			_, _ = l.server.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

// receive takes what the server sends and decides its fate.
func (l *link) receive(chunks chan<- chunk) {
	defer close(chunks)
	b := make([]byte, 16<<10)
	for {
		n, err := l.server.Read(b)
		now := time.Now()
		f := l.judge(n)
		if err != nil && f.end == 0 {
			f.end = FIN
		}
		if !f.silent {
			c := chunk{b: bytes.Clone(b[:f.keep]), due: now.Add(f.after), end: f.end}
			select {
			case chunks <- c:
			case <-l.ctx.Done():
				return
			}
		}
		if err != nil || f.end != 0 {
			_ = l.server.Close()
			return
		}
	}
}

// judge calls the proxy's fault.
func (l *link) judge(n int) fate {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.silent {
		return fate{silent: true}
	}
	f := l.proxy.fault.reply(l, n)
	l.silent = f.silent
	return f
}

// deliver writes each chunk when it is due.
func (l *link) deliver(chunks <-chan chunk) {
	for c := range chunks {
		if !l.until(c.due) {
			return
		}
		l.proxy.mu.Lock()
		l.proxy.traffic.ToClient += int64(len(c.b))
		l.proxy.mu.Unlock()
		if _, err := l.client.Write(c.b); err != nil {
			l.close()
			return
		}
		l.finish(c.end)
	}
}

// until waits, and reports whether the link is still open.
func (l *link) until(due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		select {
		case <-time.After(wait):
		case <-l.ctx.Done():
		}
	}
	return l.ctx.Err() == nil
}

// finish ends the client's side. After FIN the client may still send, until
// it closes its own.
func (l *link) finish(end End) {
	switch end {
	case FIN:
		_ = l.client.CloseWrite()
	case RST:
		_ = l.client.SetLinger(0)
		l.close()
	}
}

// close ends both sides at once.
func (l *link) close() {
	_ = l.client.Close()
	l.cancel()
}
