package replay

import (
	"io"
	"net/http"
)

// drainBytes is the most that [Drain] reads of a response. To read so much
// costs less than the new connection that it saves.
const drainBytes = 64 << 10

// Drain reads and closes the body of a response that is thrown away, so that
// its connection can carry another request. A body known to be longer than 64
// KiB is closed unread, and reading stops there in any case. A body that stands
// still is read until the context of its attempt ends: cancel that context to
// bound the time.
func Drain(resp *http.Response) {
	if resp.Body == nil {
		return
	}
	if resp.ContentLength <= drainBytes {
		_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	}
	_ = resp.Body.Close()
}
