package headers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxBodyWait bounds the wait for a body: how long a success that may hide a refusal is kept from
// its caller.
const maxBodyWait = 5 * time.Second

// peek reads the beginning of a body and puts it back. whole reports that this was the whole body.
// The text stays available after the body has been read or closed.
func peek(resp *http.Response) (text []byte, whole bool) {
	b, ok := resp.Body.(*peeked)
	if !ok {
		b = &peeked{rest: resp.Body, filled: make(chan struct{})}
		b.text = make([]byte, 0, min(max(resp.ContentLength, 0), maxBody))
		resp.Body = b
		go b.fill()
		ctx := context.Background()
		if resp.Request != nil {
			ctx = resp.Request.Context()
		}
		b.await(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text[:len(b.text):len(b.text)], errors.Is(b.err, io.EOF)
}

// A peeked is a body whose beginning was read. It reads that beginning first,
// and then the rest.
type peeked struct {
	rest   io.ReadCloser
	closed atomic.Bool   // a body may be closed while it is read
	filled chan struct{} // closed when fill has ended

	mu     sync.Mutex
	text   []byte // read by fill
	at     int    // bytes of text that Read has returned
	err    error  // how the body ended, if fill saw it
	fault  any    // the panic of a Read of the body
	handed bool   // no caller waits for more of text
}

// fill reads the beginning of the body, on a goroutine of its own. When the
// body is handed over, fill ends with the Read under way; to close the body
// ends that Read.
func (b *peeked) fill() {
	defer close(b.filled)
	defer func() {
		if fault := recover(); fault != nil { // for the goroutine that reads the body
			b.mu.Lock()
			b.fault = fault
			b.mu.Unlock()
		}
	}()
	var buffer [4 << 10]byte
	for left := maxBody; left > 0; {
		n, err := b.rest.Read(buffer[:min(left, len(buffer))])
		left -= n
		b.mu.Lock()
		b.text, b.err = append(b.text, buffer[:n]...), err
		enough := err != nil || b.handed
		b.mu.Unlock()
		if enough {
			return
		}
	}
}

// await waits until fill has ended, for maxBodyWait at most.
func (b *peeked) await(ctx context.Context) {
	timer := time.NewTimer(maxBodyWait)
	defer timer.Stop()
	canceled := ctx.Done()
	if ctx.Err() != nil {
		canceled = nil // a response that has outlived its call
	}
	select {
	case <-b.filled:
	case <-timer.C:
	case <-canceled:
	}
	b.mu.Lock()
	b.handed = true
	b.mu.Unlock()
}

// Read implements [io.Reader].
func (b *peeked) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return b.rest.Read(p) // which returns its own error for a closed body
	}
	if n := b.readText(p); n > 0 || len(p) == 0 {
		return n, nil
	}
	<-b.filled
	if n := b.readText(p); n > 0 {
		return n, nil
	}
	if b.fault != nil {
		panic(b.fault)
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

// readText reads from the text of fill so far.
func (b *peeked) readText(p []byte) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := copy(p, b.text[b.at:])
	b.at += n
	return n
}

// Close implements [io.Closer].
func (b *peeked) Close() error {
	b.closed.Store(true)
	return b.rest.Close()
}
