package replay

import (
	"bytes"
	"io"
	"reflect"
	"strings"
)

// The types that [io.NopCloser] returns.
var nopCloser, nopCloserWriterTo = reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(new(bytes.Reader)))

// inMemory returns the reader behind a body that lies in memory whole, and nil
// for other bodies. Such a body goes to the base as it is. net/http knows its
// type, and writes header and body in one write; for a body that may block it
// would write the header first. The body needs no attemptBody around it,
// because to close it does nothing.
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

// snapshot returns a GetBody for what a reader in memory has not read yet, as
// [net/http.NewRequest] makes it. It returns nil for other readers.
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
