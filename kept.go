package weir

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxKept is the most bytes of a response's body that are kept. Refusals and
// errors are shorter.
const maxKept = 16 << 10

// A keptResponse is a copy of a response that its caller has, with as much of its
// body as the caller has read. The same response can then be given to another
// try of the call. It does not hold on to the body itself, so that one that the
// caller drops is found.
type keptResponse struct {
	resp http.Response

	mu   sync.Mutex
	body []byte
	end  bool // body is complete
	lost bool // the body is longer than maxKept, or broke off
}

// keepResponse begins to keep resp, whose body it replaces.
func keepResponse(resp *http.Response) *keptResponse {
	k := &keptResponse{resp: *resp}
	k.resp.Header, k.resp.Body = resp.Header.Clone(), nil
	k.end = resp.Body == http.NoBody
	k.lost = resp.ContentLength > maxKept && !k.end
	if !k.end && !k.lost {
		resp.Body = &copiedBody{resp.Body, k}
	}
	return k
}

// A copiedBody is the body of a response that is kept.
type copiedBody struct {
	io.ReadCloser
	kept *keptResponse
}

// Read implements [io.Reader].
func (b *copiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.kept.copy(p[:n], err)
	return n, err
}

// copy takes in what was read of the body.
func (k *keptResponse) copy(read []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended := errors.Is(err, io.EOF)
	switch {
	case k.end || k.lost:
		return
	case len(k.body)+len(read) > maxKept || err != nil && !ended:
		k.body, k.lost = nil, true
		return
	}
	k.body, k.end = append(k.body, read...), ended
}

// Close implements [io.Closer]. It reads the rest first, because clients that
// try again close the body of an error unread.
func (b *copiedBody) Close() error {
	still := time.AfterFunc(drainTime, func() { b.ReadCloser.Close() })
	defer still.Stop()
	_, _ = io.CopyN(io.Discard, onlyReader{b}, maxKept+1)
	return b.ReadCloser.Close()
}

// onlyReader hides all methods of a reader but Read.
type onlyReader struct{ io.Reader }

// again returns the response once more, for req. It returns false if the
// response is not complete.
func (k *keptResponse) again(req *http.Request) (*http.Response, bool) {
	if k == nil {
		return nil, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.end {
		return nil, false
	}
	resp := k.resp
	resp.Request, resp.Header, resp.Body = req, k.resp.Header.Clone(), http.NoBody
	if len(k.body) > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(k.body))
	}
	return &resp, true
}
