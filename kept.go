package weir

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxKept is the most bytes of a response's body that are kept. Refusals and
// errors are shorter.
const maxKept = 16 << 10

// A keptResponse is a response that its caller has, and whose body is copied as
// the caller reads it. The same response can then be given to another try of
// the call.
type keptResponse struct {
	io.ReadCloser
	resp http.Response

	mu   sync.Mutex
	body []byte
	end  bool // body is complete
	lost bool // the body is longer than maxKept, or broke off
}

// keepResponse begins to keep resp, whose body it replaces.
func keepResponse(resp *http.Response) *keptResponse {
	k := &keptResponse{ReadCloser: resp.Body, resp: *resp}
	k.resp.Header = resp.Header.Clone()
	k.end = resp.Body == http.NoBody
	k.lost = resp.ContentLength > maxKept && !k.end
	if !k.end && !k.lost {
		resp.Body = k
	}
	return k
}

// Read implements [io.Reader].
func (k *keptResponse) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.end || k.lost:
		return n, err
	case len(k.body)+n > maxKept || err != nil && err != io.EOF:
		k.body, k.lost = nil, true
		return n, err
	}
	k.body = append(k.body, p[:n]...)
	k.end = err == io.EOF
	return n, err
}

// Close implements [io.Closer]. It reads the rest first, because clients that
// try again close the body of an error unread.
func (k *keptResponse) Close() error {
	still := time.AfterFunc(drainTime, func() { k.ReadCloser.Close() })
	defer still.Stop()
	_, _ = io.CopyN(io.Discard, onlyReader{k}, maxKept+1)
	return k.ReadCloser.Close()
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
