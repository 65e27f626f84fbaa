package backoff

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"
)

type verdict struct{ again bool }

func (verdict) Error() string     { return "verdict" }
func (v verdict) Retryable() bool { return v.again }

func TestOutcomeOfErrorGoesByType(t *testing.T) {
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	tests := []struct {
		name   string
		err    error
		reason Reason
		who    audience
	}{
		{"retryable", fmt.Errorf("stopped: %w", verdict{true}), ReasonFailed, idempotent},
		{"not retryable", fmt.Errorf("stopped: %w", verdict{false}), ReasonFinal, nobody},
		{"retryable, though cancelled by us", errors.Join(verdict{true}, context.Canceled), ReasonFailed, idempotent},
		{"cancelled", fmt.Errorf("base: %w", context.Canceled), ReasonCanceled, nobody},
		{"deadline of the attempt", context.DeadlineExceeded, ReasonFailed, idempotent},
		{"timeout", op("read", os.ErrDeadlineExceeded), ReasonFailed, idempotent},
		{"unknown authority", x509.UnknownAuthorityError{}, ReasonFinal, nobody},
		{"other host's certificate", &tls.CertificateVerificationError{Err: x509.HostnameError{}}, ReasonFinal, nobody},
		{"certificate refused by the caller", fmt.Errorf("base: %w", &tls.CertificateVerificationError{Err: errors.New("pin")}), ReasonFinal, nobody},
		{"expired certificate", x509.CertificateInvalidError{Reason: x509.Expired}, ReasonFinal, nobody},
		{"no roots", x509.SystemRootsError{}, ReasonFinal, nobody},
		{"not TLS", tls.RecordHeaderError{}, ReasonFinal, nobody},
		{"http answered on https", &url.Error{Err: http.ErrSchemeMismatch}, ReasonFinal, nobody},
		{"TLS alert", op("remote error", errors.New("alert")), ReasonFinal, nobody},
		{"certificate of a proxy", op("proxyconnect", x509.UnknownAuthorityError{}), ReasonFinal, nobody},
		{"address", op("dial", &net.AddrError{}), ReasonFinal, nobody},
		{"no such host", op("dial", &net.DNSError{IsNotFound: true}), ReasonFinal, nobody},
		{"no such host for now", op("dial", &net.DNSError{IsNotFound: true, IsTemporary: true}), ReasonUnsent, everybody},
		{"name server silent", &net.DNSError{IsTimeout: true}, ReasonUnsent, everybody},
		{"refused", syscall.ECONNREFUSED, ReasonUnsent, everybody},
		{"unreachable", op("dial", syscall.ENETUNREACH), ReasonUnsent, everybody},
		{"proxy refused", op("proxyconnect", op("dial", syscall.ECONNREFUSED)), ReasonUnsent, everybody},
		{"SOCKS proxy refused", op("socks connect", syscall.ECONNREFUSED), ReasonUnsent, everybody},
		{"refused stream", streamError{Code: refusedStream}, ReasonUnsent, everybody},
		{"cancelled stream", streamError{Code: 8}, ReasonFailed, idempotent},
		{"reset", op("read", syscall.ECONNRESET), ReasonFailed, idempotent},
		{"broken pipe", op("write", syscall.EPIPE), ReasonFailed, idempotent},
		{"end of file", io.EOF, ReasonFailed, idempotent},
		{"unknown", errors.New("unknown"), ReasonFailed, idempotent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reason, who := outcomeOfError(&http.Request{Method: "GET"}, tt.err)
			if reason != tt.reason || who != tt.who {
				t.Errorf("outcomeOfError(%v) = %q, %d, want %q, %d", tt.err, reason, who, tt.reason, tt.who)
			}
		})
	}
}

// Real errors of net/http, from below its Client.
func TestOutcomeOfNetHTTPsErrors(t *testing.T) {
	quiet := func(s *httptest.Server) { s.Config.ErrorLog = log.New(io.Discard, "", 0) }
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	quiet(secure)
	secure.StartTLS()
	defer secure.Close()
	mutual := httptest.NewUnstartedServer(http.NotFoundHandler())
	quiet(mutual)
	mutual.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	mutual.StartTLS()
	defer mutual.Close()
	hangUp := newListener(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	closed := newListener(t, nil)
	_ = closed.Close()
	plainHost := plain.Listener.Addr().String()

	trusting := mutual.Client().Transport.(*http.Transport)
	defer trusting.CloseIdleConnections()
	slow := &http.Transport{ResponseHeaderTimeout: time.Millisecond}
	defer slow.CloseIdleConnections()
	silent := newListener(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })

	tests := []struct {
		name   string
		base   http.RoundTripper
		url    string
		reason Reason
		who    audience
	}{
		{"refused", http.DefaultTransport, "http://" + closed.Addr().String(), ReasonUnsent, everybody},
		{"untrusted", http.DefaultTransport, secure.URL, ReasonFinal, nobody},
		{"http on https", http.DefaultTransport, "https://" + plainHost, ReasonFinal, nobody},
		{"certificate asked for", trusting, mutual.URL, ReasonFinal, nobody},
		{"scheme", http.DefaultTransport, "gopher://" + plainHost, ReasonFinal, nobody},
		{"closed without an answer", http.DefaultTransport, "http://" + hangUp.Addr().String(), ReasonFailed, idempotent},
		{"no header in time", slow, "http://" + silent.Addr().String(), ReasonFailed, idempotent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), "GET", tt.url, http.NoBody)
			resp, err := tt.base.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
				t.Fatalf("RoundTrip answers %d, want an error", resp.StatusCode)
			}
			reason, who := outcomeOfError(req, err)
			if reason != tt.reason || who != tt.who {
				t.Errorf("outcomeOfError(%T %v) = %q, %d, want %q, %d", err, err, reason, who, tt.reason, tt.who)
			}
		})
	}
}

func TestRefusedStreamIsKnownByItsFields(t *testing.T) {
	server := newListener(t, refuseStream)
	base := &http.Transport{Protocols: new(http.Protocols)}
	base.Protocols.SetUnencryptedHTTP2(true)
	defer base.CloseIdleConnections()
	req := httptest.NewRequestWithContext(t.Context(), "GET", "http://"+server.Addr().String(), http.NoBody)
	resp, err := base.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	e, ok := errors.AsType[streamError](err)
	if !ok || e.Code != refusedStream || !unsent(err) {
		t.Errorf("%T %v is not known for a refused stream", err, err)
	}
}

// refuseStream answers an HTTP/2 request with headers, so that net/http does not resend it, and
// then refuses its stream.
func refuseStream(c net.Conn) {
	r := bufio.NewReader(c)
	_, _ = r.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	_, _ = c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		_, _ = r.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2]))
		if kind := head[3]; kind == 1 { // HEADERS
			stream := head[5:9]
			_, _ = c.Write(append([]byte{0, 0, 1, 1, 4}, append(stream, 0x88)...))                   // :status 200
			_, _ = c.Write(append([]byte{0, 0, 4, 3, 0}, append(stream, 0, 0, 0, refusedStream)...)) // RST_STREAM
		}
	}
}

// newListener serves each connection with serve, one after another, until the
// test ends.
func newListener(t *testing.T, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if serve == nil {
		return l
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l
}
