package redistest

import "time"

// An End is how a connection ends.
type End int

// The ends of a connection, as its client sees them.
const (
	FIN End = iota + 1 // the client reads the end of the stream
	RST                // the client's connection is reset
)

// A fault decides what happens to replies. It is called with the proxy's lock held, and with n zero
// at the end of the server's stream.
type fault interface {
	reply(l *link, n int) fate
}

// A fate is what happens to some bytes of a reply.
type fate struct {
	keep   int           // bytes that are passed on
	after  time.Duration // delay
	end    End           // how the connection then ends; zero: it stays open
	silent bool          // nothing is passed on from now on
}

type pass struct{}

func (pass) reply(_ *link, n int) fate { return fate{keep: n} }

type swallow struct{}

func (swallow) reply(*link, int) fate { return fate{silent: true} }

type delay time.Duration

func (d delay) reply(_ *link, n int) fate { return fate{keep: n, after: time.Duration(d)} }

// A cut ends connections after a number of bytes.
type cut struct {
	after int
	end   End
	seen  map[*link]int
	next  bool  // only the first connection with a reply
	first *link // that one
}

func (c *cut) reply(l *link, n int) fate {
	if n == 0 || c.next && !c.claim(l) {
		return fate{keep: n}
	}
	left := c.after - c.seen[l]
	c.seen[l] += n
	if n < left {
		return fate{keep: n}
	}
	return fate{keep: left, end: c.end}
}

func (c *cut) claim(l *link) bool {
	if c.first == nil {
		c.first = l
	}
	return c.first == l
}
