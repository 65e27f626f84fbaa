package testserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// PipeURL is the [Server.URL] of every server opened by [Pipe].
const PipeURL = "http://vendor.test"

// A Server serves until it is closed. It is safe for concurrent use.
type Server struct {
	URL string // of the root, without a slash at the end

	wires *wires
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	roots *x509.CertPool // nil: no TLS
	stop  func()

	mu         sync.Mutex
	transports []*http.Transport
}

// Listen serves h on a free loopback port, over HTTP/1.1. The error says that
// there is no port.
func Listen(h http.Handler) (*Server, error) {
	s, err := listenTCP("http")
	if err != nil {
		return nil, err
	}
	s.serve(h, s.wires)
	return s, nil
}

// ListenTLS serves h on a free loopback port over TLS, with HTTP/2 and
// HTTP/1.1. The certificate is made for this process, and [Server.Transport]
// trusts it.
func ListenTLS(h http.Handler) (*Server, error) {
	s, err := listenTCP("https")
	if err != nil {
		return nil, err
	}
	config, err := s.useTLS("h2", "http/1.1")
	if err != nil {
		s.wires.Close()
		return nil, err
	}
	s.serve(h, tls.NewListener(s.wires, config))
	return s, nil
}

// Pipe serves h over in-memory pipes, with HTTP/1.1. The error is always nil.
// In a testing/synctest bubble, open and close it inside.
func Pipe(h http.Handler) (*Server, error) {
	p := newPipes()
	s := &Server{URL: PipeURL, wires: newWires(p), dial: p.dial}
	s.serve(h, s.wires)
	return s, nil
}

// listenTCP returns a server with a loopback port that serves nothing yet.
func listenTCP(scheme string) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("testserver: %w", err)
	}
	address := listener.Addr().String()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	return &Server{URL: scheme + "://" + address, wires: newWires(listener), dial: dial}, nil
}

// useTLS returns the configuration of TLS, and makes transports trust its
// certificate.
func (s *Server) useTLS(protocols ...string) (*tls.Config, error) {
	certificate, err := ownCertificate()
	if err != nil {
		return nil, fmt.Errorf("testserver: %w", err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(certificate.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: protocols}, nil
}

// serve begins to serve h on a goroutine of its own.
func (s *Server) serve(h http.Handler, l net.Listener) {
	if v, ok := h.(*Vendor); ok {
		v.Start()
	}
	// Handlers detect the end of the server at once, even those that miss their client's leaving.
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	server := &http.Server{
		Handler:     h,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withWire,
		ConnState:   countConns(&running),
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	running.Go(func() { server.Serve(l) })
	s.stop = func() {
		cancel()
		server.Close()
		s.wires.closeAll()
		running.Wait()
	}
}

// countConns counts the goroutines that serve connections. They must end before a bubble's main
// goroutine does. net/http sleeps for half a second when it closes a connection whose client still
// writes, and without a goroutine the clock would stop.
func countConns(running *sync.WaitGroup) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			running.Add(1)
		case http.StateClosed, http.StateHijacked:
			running.Done()
		}
	}
}

// Transport returns a new transport whose connections all lead to the server, whatever host a
// request names. A server without TLS also gets https requests, in plain text. It keeps up to 1,024
// idle connections and uses no proxy. The caller may change it.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{DialContext: s.dial, MaxIdleConnsPerHost: 1024}
	if s.roots != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: s.roots}
		t.ForceAttemptHTTP2 = true
	} else {
		t.DialTLSContext = s.dial
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transports = append(s.transports, t)
	return t
}

// Client returns a new client with a new [Server.Transport].
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// Conns returns how many connections clients have opened so far.
func (s *Server) Conns() int { return s.wires.count() }

// Close closes the server, all of its connections, and the idle connections of
// its transports. It cancels the contexts of requests that are being answered.
// It returns when the goroutines that serve connections have ended.
func (s *Server) Close() {
	s.mu.Lock()
	transports := s.transports
	s.transports = nil
	s.mu.Unlock()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	s.stop()
}
