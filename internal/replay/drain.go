package replay

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// drainBytes is the most that [Drain] reads of a response. Reading that much costs less than the
// new connection that it saves.
const drainBytes = 64 << 10

// drainTime bounds the time for which [Drain] reads. A new connection costs about as much, and an
// answer's body usually arrives with its header.
const drainTime = 100 * time.Millisecond

// Drain reads a body into memory and closes it, so that its connection can carry another request,
// and the response can still be returned. It reads 64 KiB at most, and for 100 ms. An incomplete
// body then ends with [io.ErrUnexpectedEOF].
func Drain(resp *http.Response) {
	body := resp.Body
	if body == nil || body == http.NoBody {
		return
	}
	still := time.AfterFunc(drainTime, func() { body.Close() })
	defer still.Stop()
	var read bytes.Buffer
	_, err := io.CopyN(&read, body, drainBytes+1)
	_ = body.Close()
	if read.Len() > drainBytes {
		read.Truncate(drainBytes)
	}
	end := io.EOF
	if !errors.Is(err, io.EOF) {
		end = io.ErrUnexpectedEOF
	}
	resp.Body = &kept{read, end}
}

// kept is a body in memory. It has no other methods of the buffer: its WriteTo would not report
// that the body is incomplete.
type kept struct {
	read bytes.Buffer
	end  error // after the bytes
}

// Read implements [io.Reader].
func (k *kept) Read(p []byte) (int, error) {
	n, err := k.read.Read(p)
	if err != nil {
		err = k.end
	}
	return n, err
}

// Close implements [io.Closer].
func (*kept) Close() error { return nil }
