package redistest

import (
	"io"
	"net"
	"sync"
)

// A state is what happens to who knocks at a door.
type state int

const (
	closed state = iota // refused
	opened              // let in
	filled              // not heard
)

// A door is a proxy's listener. The zero door is closed.
type door struct {
	state  state
	closer io.Closer // nil when closed
	wg     sync.WaitGroup
}

// set changes the state, if it is another. Who is let in, admit is called
// with.
func (d *door) set(to state, addr string, admit func(*net.TCPConn)) error {
	if d.state == to {
		return nil
	}
	d.shut()
	var err error
	switch to {
	case opened:
		err = d.open(addr, admit)
	case filled:
		d.closer, err = blackHole(addr)
	}
	if err == nil {
		d.state = to
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
