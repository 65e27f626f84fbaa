package redistest_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/redistest"
)

// A client sends commands over one connection.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t: t, conn: conn, r: bufio.NewReader(conn)}
}

// ask returns the reply's line, as far as it arrived within the time.
func (c *client) ask(within time.Duration, line string) (string, error) {
	c.conn.SetDeadline(time.Now().Add(within))
	if _, err := io.WriteString(c.conn, line+"\r\n"); err != nil {
		return "", err
	}
	answer, err := c.r.ReadString('\n')
	return strings.TrimSpace(answer), err
}

func (c *client) answers(line, answer string) {
	c.t.Helper()
	if got, err := c.ask(5*time.Second, line); got != answer || err != nil {
		c.t.Errorf("%s: %q, %v, want %q", line, got, err, answer)
	}
}

func (c *client) fails(within time.Duration, line, answer string, target error) {
	c.t.Helper()
	if got, err := c.ask(within, line); got != answer || !errors.Is(err, target) {
		c.t.Errorf("%s: %q, %v, want %q, %v", line, got, err, answer, target)
	}
}

func serve(t *testing.T) (*redistest.Server, *redistest.Proxy) {
	s := redistest.Start(t)
	return s, redistest.NewProxy(t, s.Addr())
}

func TestProxyPasses(t *testing.T) {
	_, p := serve(t)
	a, b := dial(t, p.Addr()), dial(t, p.Addr())
	a.answers("PING", "+PONG")
	b.answers("PING", "+PONG")
	a.answers("ECHO hello", "$5")
	want(t, "Traffic()", p.Traffic(), redistest.Traffic{Accepted: 2, Open: 2, ToServer: 24, ToClient: 25})
}

func TestProxyRefuses(t *testing.T) {
	_, p := serve(t)
	c := dial(t, p.Addr())
	c.answers("PING", "+PONG") // it was accepted
	p.Refuse()
	if !refused(p.Addr()) {
		t.Error("it accepts")
	}
	c.answers("PING", "+PONG")
	p.Drop()
	c.fails(5*time.Second, "PING", "", io.EOF)
	p.Pass()
	dial(t, p.Addr()).answers("PING", "+PONG")
}

func TestProxyIsABlackHole(t *testing.T) {
	_, p := serve(t)
	p.BlackHoleSYN()
	for range 3 {
		_, err := net.DialTimeout("tcp", p.Addr(), 30*time.Millisecond)
		if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("Dial: %v, want a timeout", err)
		}
	}
	want(t, "Traffic()", p.Traffic(), redistest.Traffic{})
	p.Pass()
	dial(t, p.Addr()).answers("PING", "+PONG")
}

func TestProxySwallows(t *testing.T) {
	s, p := serve(t)
	c, idle := dial(t, p.Addr()), dial(t, p.Addr())
	p.Swallow()
	c.fails(100*time.Millisecond, "INCR n", "", os.ErrDeadlineExceeded)
	want(t, "GET", do(t, s, "GET", "n"), "1")
	p.Pass()
	c.fails(30*time.Millisecond, "PING", "", os.ErrDeadlineExceeded)
	s.Kill()
	c.fails(30*time.Millisecond, "PING", "", os.ErrDeadlineExceeded)
	idle.fails(5*time.Second, "PING", "", io.EOF)
}

func TestProxyDelays(t *testing.T) {
	const d = 60 * time.Millisecond
	_, p := serve(t)
	c := dial(t, p.Addr())
	p.Delay(d)
	start := time.Now()
	c.answers("PING", "+PONG")
	if took := time.Since(start); took < d {
		t.Errorf("the answer took %v, want at least %v", took, d)
	}
}

func TestDelayedRepliesDoNotWaitForOneAnother(t *testing.T) {
	const d, n = 100 * time.Millisecond, 20
	s, p := serve(t)
	c := dial(t, p.Addr())
	p.Delay(d)
	start := time.Now()
	for range n {
		io.WriteString(c.conn, "PING\r\n")
		do(t, s, "PING") // meanwhile the reply arrives
	}
	for range n {
		c.r.ReadString('\n')
	}
	if took := time.Since(start); took > n/2*d {
		t.Errorf("%d answers took %v, want about %v", n, took, d)
	}
}

func TestProxyCutsReplies(t *testing.T) {
	for name, test := range map[string]struct {
		n    int
		end  redistest.End
		got  string
		want error
	}{
		"FIN":          {3, redistest.FIN, "+PO", io.EOF},
		"FIN at once":  {0, redistest.FIN, "", io.EOF},
		"RST at once":  {0, redistest.RST, "", syscall.ECONNRESET},
		"whole reply":  {7, redistest.FIN, "+PONG", nil},
		"within a few": {10, redistest.FIN, "+PONG", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := serve(t)
			a, b := dial(t, p.Addr()), dial(t, p.Addr())
			p.Cut(test.n, test.end)
			do(t, s, "CONFIG", "RESETSTAT")
			for _, c := range []*client{a, b, dial(t, p.Addr())} {
				c.fails(5*time.Second, "PING", test.got, test.want)
			}
			want(t, "calls", s.Commands()["ping"], 3)
		})
	}
}

// Data that the kernel holds when the reset arrives may or may not be read.
func TestProxyResetsWithinAReply(t *testing.T) {
	_, p := serve(t)
	c := dial(t, p.Addr())
	p.Cut(3, redistest.RST)
	got, err := c.ask(5*time.Second, "PING")
	const sent = "+PO"
	if !strings.HasPrefix(sent, got) || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("PING: %q, %v, want what begins %s and %v", got, err, sent, syscall.ECONNRESET)
	}
}

func TestProxyCutsTheNextReplyOnly(t *testing.T) {
	s, p := serve(t)
	a, b := dial(t, p.Addr()), dial(t, p.Addr())
	p.CutNext(1, redistest.FIN)
	a.fails(5*time.Second, "INCR n", ":", io.EOF)
	b.answers("INCR n", ":2")
	dial(t, p.Addr()).answers("INCR n", ":3")
	want(t, "GET", do(t, s, "GET", "n"), "3")
}

func TestProxyFlaps(t *testing.T) {
	_, p := serve(t)
	c := dial(t, p.Addr())
	c.answers("PING", "+PONG")
	p.Flap(1, 10*time.Millisecond)
	c.fails(5*time.Second, "PING", "", io.EOF)
	var changes int
	for down := true; changes < 4; {
		if now := refused(p.Addr()); now != down {
			down = now
			changes++
		}
	}
	p.Pass()
	dial(t, p.Addr()).answers("PING", "+PONG")
}

func TestProxyOfAStoppedServerEnds(t *testing.T) {
	s, p := serve(t)
	c := dial(t, p.Addr())
	s.Stop()
	c.conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	for err := error(nil); err == nil; { // until all buffers are full
		_, err = c.conn.Write(make([]byte, 1<<20))
	}
}

func TestProxyOfNoServerResets(t *testing.T) {
	s, p := serve(t)
	s.Kill()
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil { // else the reset was quicker
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read: %v, want %v", err, syscall.ECONNRESET)
	}
}

func TestProxyChangesUnderLoad(t *testing.T) {
	_, p := serve(t)
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					load(p.Addr())
				}
			}
		})
	}
	for range 3 {
		for _, change := range []func(){
			p.Pass, p.Refuse, p.BlackHoleSYN, p.Swallow, p.Drop,
			func() { p.Delay(time.Millisecond) },
			func() { p.Cut(1, redistest.FIN) },
			func() { p.CutNext(1, redistest.RST) },
			func() { p.Flap(1, time.Millisecond) },
		} {
			wg.Go(change)
		}
	}
	time.AfterFunc(200*time.Millisecond, func() { close(over) })
	wg.Wait()
	p.Pass()
	dial(t, p.Addr()).answers("PING", "+PONG")
}

// load sends commands over a connection of its own until one fails.
func load(addr string) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Millisecond)
	if err != nil {
		return
	}
	defer conn.Close()
	c := &client{conn: conn, r: bufio.NewReader(conn)}
	for n := 0; err == nil && n < 100; n++ {
		_, err = c.ask(10*time.Millisecond, "PING")
	}
}

// A process being started holds descriptors open, and that does not fail a change.
func TestProxyWaitsForItsAddress(t *testing.T) {
	p := redistest.NewProxy(t, redistest.Start(t).Addr())
	p.Refuse()
	held, err := net.Listen("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Close() })
	p.Pass()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
