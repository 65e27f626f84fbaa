package recipes

import (
	"context"
	"net"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A post office is an SMTP server within a bubble.
type postOffice struct {
	mu    sync.Mutex
	came  []time.Time        // of each MAIL command
	taken int                // mails
	reply func(n int) string // to the n-th MAIL command
}

func (p *postOffice) dial(context.Context) (*smtp.Client, error) {
	near, far := net.Pipe()
	go p.serve(far)
	return smtp.NewClient(near, "mail.test")
}

// serve takes the mails of one session (RFC 5321).
func (p *postOffice) serve(conn net.Conn) {
	c := textproto.NewConn(conn)
	defer c.Close()
	answer := "220 mail.test"
	for {
		if c.PrintfLine("%s", answer) != nil {
			return
		}
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(line, " ")
		if answer = "250 OK"; verb == "DATA" && c.PrintfLine("354 go on") == nil {
			_, _ = c.ReadDotBytes()
		}
		p.mu.Lock()
		switch verb {
		case "MAIL":
			p.came = append(p.came, time.Now())
			answer = p.reply(len(p.came))
		case "DATA":
			p.taken++
		}
		p.mu.Unlock()
	}
}

// limited replies as a server with a limit of mails a second.
func limited(perSecond int, refusal string) func(int) string {
	var times []time.Time
	return func(int) string {
		now := time.Now()
		times = slices.DeleteFunc(times, func(at time.Time) bool { return now.Sub(at) >= time.Second })
		if len(times) >= perSecond {
			return refusal
		}
		times = append(times, now)
		return "250 OK"
	}
}

// newQueue returns a queue over limits that ends with the test.
func newQueue(t *testing.T, limits ...throttle.Limit) *shaping.Queue {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("queue", limits...)
	if err != nil {
		t.Fatal(err)
	}
	queue := shaping.NewQueue(limiter)
	t.Cleanup(func() { queue.Close() })
	return queue
}

// A server of 14 mails a second takes 140 mails: without a refusal if the queue has that limit, and
// after refusals if the limit is set too high.
func TestMailsWaitTheirTurn(t *testing.T) {
	for name, c := range map[string]struct {
		refusal string
		limit   throttle.Limit
		refused bool
		within  time.Duration
	}{
		"as the server":     {"421 4.7.0 too fast", throttle.TokenBucket(14, time.Second, 1), false, 10 * time.Second},
		"too fast, 421":     {"421 4.7.0 too fast", throttle.TokenBucket(50, time.Second, 20), true, time.Minute},
		"too fast, 450 4.7": {"450 4.7.1 too many mails", throttle.TokenBucket(50, time.Second, 20), true, time.Minute},
		"too fast, SES":     {"454 Throttling failure: Maximum sending rate exceeded.", throttle.TokenBucket(50, time.Second, 20), true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				office := &postOffice{reply: limited(14, c.refusal)}
				m := &mailer{dial: office.dial, queue: newQueue(t, c.limit)}
				began := time.Now()
				var sent sync.WaitGroup
				for range 140 {
					sent.Go(func() {
						if err := m.send(t.Context(), "us@example.com", []string{"you@example.com"}, []byte("text")); err != nil {
							t.Error(err)
						}
					})
				}
				sent.Wait()
				if office.taken != 140 || (len(office.came) > 140) != c.refused || time.Since(began) > c.within {
					t.Errorf("%d mails were taken of %d that came, in %v, want 140 in %v, refusals: %v", office.taken, len(office.came), time.Since(began), c.within, c.refused)
				}
			})
		})
	}
}

// A full or missing mailbox is no refusal: other mails are sent.
func TestRepliesThatAreNoRefusal(t *testing.T) {
	for _, reply := range []string{"450 4.2.1 mailbox busy", "452 4.2.2 mailbox full", "550 5.1.1 no such user", "554 5.7.1 spam"} {
		synctest.Test(t, func(t *testing.T) {
			office := &postOffice{reply: func(int) string { return reply }}
			m := &mailer{dial: office.dial, queue: newQueue(t)}
			began := time.Now()
			err := m.send(t.Context(), "us@example.com", []string{"you@example.com"}, []byte("text"))
			if err == nil || len(office.came) != 1 || time.Since(began) > 0 {
				t.Errorf("%s: send = %v after %d mails and %v, want an error at once", reply, err, len(office.came), time.Since(began))
			}
		})
	}
}
