package replay

import (
	"io"
	"net/http"
)

// drainBytes is the most that [Drain] reads of a response. Reading so much costs
// less than the new connection that is saved.
const drainBytes = 64 << 10

// Drain reads and closes the body of a response that is thrown away, so that
// its connection can carry another request. A longer body is closed as it is.
// A body that stands still is read until the context of its attempt ends: end
// it to bound the time.
func Drain(resp *http.Response) {
	if resp.Body == nil {
		return
	}
	if resp.ContentLength <= drainBytes {
		_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	}
	_ = resp.Body.Close()
}
