package redistest

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// A state is what happens to a client that connects.
type state int

const (
	closed state = iota // refused
	opened              // accepted
	filled              // its packets are dropped
)

// A door is a proxy's listener. The zero door is closed.
type door struct {
	state  state
	closer io.Closer // nil when closed
	wg     sync.WaitGroup
}

// set changes the state, if it differs. admit is called with each accepted connection.
func (d *door) set(to state, addr string, admit func(*net.TCPConn)) error {
	if d.state == to {
		return nil
	}
	d.shut()
	err := d.enter(to, addr, admit)
	for late := time.Now().Add(linger); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
		err = d.enter(to, addr, admit)
	}
	if err == nil {
		d.state = to
	}
	return err
}

// linger is how long a closed listener may keep its address. A process being started holds the
// files that were open at its fork until its exec.
const linger = 2 * time.Second

// enter takes the address, except in the state closed.
func (d *door) enter(to state, addr string, admit func(*net.TCPConn)) (err error) {
	switch to {
	case opened:
		err = d.open(addr, admit)
	case filled:
		d.closer, err = blackHole(addr)
	}
	return err
}

func (d *door) shut() {
	if d.closer != nil {
		d.closer.Close()
	}
	d.wg.Wait()
	d.state, d.closer = closed, nil
}

func (d *door) open(addr string, admit func(*net.TCPConn)) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	d.closer = l
	d.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			admit(conn.(*net.TCPConn))
		}
	})
	return nil
}
