package replay

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// The types that [io.NopCloser] returns.
var nopCloser, nopCloserWriterTo = reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(new(bytes.Reader)))

// inMemory returns the reader behind a body that is wholly in memory, and nil for other bodies.
// Such a body goes to the base unchanged. net/http knows its type, and writes header and body in
// one write. For a body that may block, it would write the header first. The body needs no
// attemptBody around it, because closing it does nothing.
func inMemory(body io.ReadCloser) io.Reader {
	if t := reflect.TypeOf(body); t != nopCloser && t != nopCloserWriterTo {
		return nil
	}
	switch r := reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Buffer:
		return r
	case *bytes.Reader:
		return r
	case *strings.Reader:
		return r
	}
	return nil
}

// snapshot returns a GetBody for the unread rest of a reader in memory, as [net/http.NewRequest]
// makes it. It returns nil for other readers.
func snapshot(memory io.Reader) func() (io.ReadCloser, error) {
	switch r := memory.(type) {
	case *bytes.Buffer:
		unread := r.Bytes()
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(unread)), nil }
	case *bytes.Reader:
		now := *r
		return func() (io.ReadCloser, error) { r := now; return io.NopCloser(&r), nil }
	case *strings.Reader:
		now := *r
		return func() (io.ReadCloser, error) { r := now; return io.NopCloser(&r), nil }
	}
	return nil
}

// copying are the functions that [http.NewRequest] sets as GetBody. They return
// a new reader each time.
var copying = func() (all []uintptr) {
	for _, r := range []io.Reader{bytes.NewBufferString("x"), bytes.NewReader([]byte("x")), strings.NewReader("x")} {
		if req, err := http.NewRequest(http.MethodPut, "", r); err == nil { //nolint:noctx // not sent
			all = append(all, reflect.ValueOf(req.GetBody).Pointer())
		}
	}
	return all
}()

// copies reports whether a GetBody is known to return a new reader each time.
func copies(getBody func() (io.ReadCloser, error)) bool {
	return slices.Contains(copying, reflect.ValueOf(getBody).Pointer())
}
