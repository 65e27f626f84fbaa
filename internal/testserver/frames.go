package testserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A Refusal says how [Frames] refuses a stream.
type Refusal uint8

// The refusals, with their error codes (RFC 9113 section 7).
const (
	GoAway          Refusal = iota // GOAWAY, NO_ERROR, last stream 0: nothing on this connection was processed
	RefusedStream                  // RST_STREAM, REFUSED_STREAM
	EnhanceYourCalm                // GOAWAY, ENHANCE_YOUR_CALM, last stream 0
	CalmStream                     // RST_STREAM, ENHANCE_YOUR_CALM
)

// Frames is an HTTP/2 server of bare frames. It refuses some request streams before it answers the
// others with an empty 200, and counts streams as they arrive. Set the fields, and then open it
// with [ListenFrames].
type Frames struct {
	Refusals int     // streams refused before the first 200; negative: all
	How      Refusal // zero: GoAway

	streams atomic.Int64
}

// Streams returns how many request streams clients have opened so far.
func (f *Frames) Streams() int { return int(f.streams.Load()) }

// ListenFrames serves f on a free loopback port over TLS, with HTTP/2 only. The
// error says that there is no port or no certificate.
func ListenFrames(f *Frames) (*Server, error) {
	s, err := listenTCP("https")
	if err != nil {
		return nil, err
	}
	config, err := s.useTLS("h2")
	if err != nil {
		s.wires.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := s.wires.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				f.serve(ctx, tls.Server(conn, config))
			})
		}
	})
	s.stop = func() {
		cancel()
		s.wires.closeAll()
		running.Wait()
	}
	return s, nil
}

// preface is what a client sends first (RFC 9113 section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// The frame types and flags that matter here (RFC 9113 section 6).
const (
	frameHeaders   = 0x1
	frameRSTStream = 0x3
	frameSettings  = 0x4
	framePing      = 0x6
	frameGoAway    = 0x7

	flagAck        = 0x1
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
)

const (
	codeNoError         = 0x0
	codeRefusedStream   = 0x7
	codeEnhanceYourCalm = 0xb
)

// status200 is ":status: 200" of HPACK's static table (RFC 7541 appendix A).
const status200 = 0x88

// A frame is one HTTP/2 frame without its length.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// serve speaks to one client until either side closes. It does not decode
// header blocks: a stream counts when its HEADERS frame comes.
func (f *Frames) serve(ctx context.Context, conn *tls.Conn) {
	if conn.HandshakeContext(ctx) != nil {
		return
	}
	r := bufio.NewReader(conn)
	if _, err := r.Discard(len(preface)); err != nil {
		return
	}
	err := writeFrame(conn, frame{kind: frameSettings})
	for err == nil {
		var in frame
		if in, err = readFrame(r); err == nil {
			err = f.reply(conn, in)
		}
	}
}

// reply answers one frame, if that needs an answer.
func (f *Frames) reply(conn net.Conn, in frame) error {
	switch {
	case in.kind == frameSettings && in.flags&flagAck == 0:
		return writeFrame(conn, frame{kind: frameSettings, flags: flagAck})
	case in.kind == framePing && in.flags&flagAck == 0:
		return writeFrame(conn, frame{kind: framePing, flags: flagAck, payload: in.payload})
	case in.kind == frameHeaders:
		number := int(f.streams.Add(1))
		return writeFrame(conn, f.answer(number, in.stream))
	}
	return nil
}

// answer returns the frame that answers the stream of that number.
func (f *Frames) answer(number int, stream uint32) frame {
	if f.Refusals >= 0 && number > f.Refusals {
		flags := byte(flagEndStream | flagEndHeaders)
		return frame{kind: frameHeaders, flags: flags, stream: stream, payload: []byte{status200}}
	}
	switch f.How {
	case RefusedStream:
		return rstStream(stream, codeRefusedStream)
	case CalmStream:
		return rstStream(stream, codeEnhanceYourCalm)
	case EnhanceYourCalm:
		return goAway(codeEnhanceYourCalm)
	}
	return goAway(codeNoError)
}

// rstStream returns a RST_STREAM.
func rstStream(stream, code uint32) frame {
	return frame{kind: frameRSTStream, stream: stream, payload: binary.BigEndian.AppendUint32(nil, code)}
}

// goAway returns a GOAWAY whose last stream is 0.
func goAway(code uint32) frame {
	return frame{kind: frameGoAway, payload: binary.BigEndian.AppendUint32(make([]byte, 4), code)}
}

func readFrame(r io.Reader) (frame, error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	in := frame{kind: head[3], flags: head[4], payload: make([]byte, length)}
	in.stream = binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1)
	_, err := io.ReadFull(r, in.payload)
	return in, err
}

func writeFrame(w io.Writer, f frame) error {
	n := len(f.payload)
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), f.kind, f.flags}
	b = binary.BigEndian.AppendUint32(b, f.stream)
	_, err := w.Write(append(b, f.payload...))
	return err
}
