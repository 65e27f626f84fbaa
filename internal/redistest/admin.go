package redistest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// answerWithin is how long a command may take: longer than any fault that a
// test waits out.
const answerWithin = 10 * time.Second

// An admin is a connection of the test's own, kept between commands. It uses the server's socket
// file, which no other server has and which faults of the port do not affect.
type admin struct {
	path string

	mu   sync.Mutex
	conn net.Conn
	r    *bufio.Reader
}

// Do sends a command over a kept connection, and returns its reply: a string, an int64, nil, or a
// slice of them. An error reply is an [Error], inside a slice too. A command has 10 s, and commands
// are sent one after the other. If the server has closed the connection, the command is sent over a
// new one, which is not authenticated.
func (s *Server) Do(args ...string) (any, error) { return s.admin.do(args) }

func (a *admin) do(args []string) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.conn != nil
	reply, err := a.exchange(args)
	if kept && gone(err) {
		reply, err = a.exchange(args)
	}
	return reply, err
}

// exchange does one command. After an error of the connection it does none.
func (a *admin) exchange(args []string) (any, error) {
	if a.conn == nil {
		conn, err := net.DialTimeout("unix", a.path, answerWithin)
		if err != nil {
			return nil, err
		}
		a.conn, a.r = conn, bufio.NewReader(conn)
	}
	_ = a.conn.SetDeadline(time.Now().Add(answerWithin))
	_, err := a.conn.Write(command(args))
	if err == nil {
		var reply any
		if reply, err = readReply(a.r); err == nil {
			return verdict(reply)
		}
	}
	_ = a.conn.Close()
	a.conn = nil
	return nil, err
}

// close waits for a command under way.
func (a *admin) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		_ = a.conn.Close()
		a.conn = nil
	}
}

// verdict returns an error reply as an error.
func verdict(reply any) (any, error) {
	if err, ok := reply.(Error); ok {
		return nil, err
	}
	return reply, nil
}

// answered reports whether the server answered, even with an error.
func answered(err error) bool {
	var refusal Error
	return err == nil || errors.As(err, &refusal)
}

// gone reports whether the other side had closed the connection.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
