package redispipe

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// A packet is bytes in transit.
type packet struct {
	bytes []byte
	due   time.Time
}

// largest is more than a client writes at once: the text of a script.
const largest = 1 << 17

// carry takes bytes from one end to another, half a round trip away, until one of them is closed.
// Then it closes the other.
func (s *Server) carry(from, to net.Conn) {
	way := make(chan packet, 1024)
	var delivering sync.WaitGroup
	delivering.Go(func() {
		deliver(way, to)
		_ = from.Close()
	})
	buffer, lost := make([]byte, largest), false
	for {
		n, err := from.Read(buffer)
		if err != nil {
			break
		}
		takes, loses := s.way()
		if lost = lost || loses; !lost {
			way <- packet{bytes.Clone(buffer[:n]), time.Now().Add(takes)}
		}
	}
	close(way)
	delivering.Wait()
}

// deliver writes packets when they are due, and closes the end it writes to. Once that end takes
// nothing more, the rest is lost.
func deliver(way <-chan packet, to net.Conn) {
	for p := range way {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	_ = to.Close()
}
