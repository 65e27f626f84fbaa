package main

import (
	"net"
	"net/http"
	"net/smtp"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/examples/internal/waits"
	"github.com/weirgo/weir/internal/testserver"
)

// A provider is the embedded one. It takes mails by an HTTP API and by SMTP.
type provider struct {
	*testserver.Server
	api         *testserver.Vendor
	smtp        net.Listener
	refusedSMTP atomic.Int32
	sessions    sync.WaitGroup
}

func openProvider() (*provider, error) {
	p := &provider{api: &testserver.Vendor{Limits: []testserver.Limit{
		testserver.TokenBucket(rate.Permits, rate.Per, rate.Permits),
		testserver.FirstUseWindow(day.Permits, day.Per),
	}}}
	var err error
	if p.Server, err = testserver.Listen(p.api); err != nil {
		return nil, err
	}
	if p.smtp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		p.Server.Close()
		return nil, err
	}
	p.sessions.Go(p.acceptSMTP)
	return p, nil
}

func (p *provider) Close() {
	p.Server.Close()
	_ = p.smtp.Close()
	p.sessions.Wait()
}

// refused returns how many mails the API refused.
func (p *provider) refused() int { return p.api.Arrivals().Count(http.StatusTooManyRequests) }

// acceptSMTP serves sessions until the listener is closed. The bucket limits all of them together
// to the provider's rate.
func (p *provider) acceptSMTP() {
	bucket, filled := float64(rate.Permits), time.Now()
	var mu sync.Mutex
	grant := func() bool {
		mu.Lock()
		defer mu.Unlock()
		bucket = min(bucket+time.Since(filled).Seconds()*rate.PerSecond(), float64(rate.Permits))
		filled = time.Now()
		if bucket < 1 {
			p.refusedSMTP.Add(1)
			return false
		}
		bucket--
		return true
	}
	for {
		conn, err := p.smtp.Accept()
		if err != nil {
			return
		}
		p.sessions.Go(func() { serveSMTP(conn, grant) })
	}
}

// serveSMTP takes the mails of one session, as RFC 5321 has it.
func serveSMTP(conn net.Conn, grant func() bool) {
	defer func() { _ = conn.Close() }()
	c := textproto.NewConn(conn)
	answer, line := "220 mail.test", ""
	for err := error(nil); err == nil; {
		if err = c.PrintfLine("%s", answer); err != nil {
			return
		}
		if line, err = c.ReadLine(); err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(line, " "); verb {
		case "MAIL":
			answer = "250 OK"
			if !grant() {
				answer = "454 Throttling failure: Maximum sending rate exceeded." // as SES has it
			}
		case "DATA":
			if err = c.PrintfLine("354 go on"); err == nil {
				_, err = c.ReadDotBytes()
			}
			answer = "250 queued"
		case "QUIT":
			_ = c.PrintfLine("221 bye")
			return
		default:
			answer = "250 mail.test"
		}
	}
}

// sendMail sends one mail by SMTP.
func sendMail(server string, kind waits.Kind) error {
	subject := "Our newsletter"
	if kind == waits.Password {
		subject = "Your one-time password"
	}
	return smtp.SendMail(server, nil, "us@example.com", []string{"you@example.com"}, []byte("Subject: "+subject+"\r\n\r\n..."))
}
