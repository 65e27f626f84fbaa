package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A source is a caller's body that cannot seek. It counts its Close calls, and Reads after the
// first.
type source struct {
	io.Reader
	ended  chan struct{} // closed at its end; nil: no wait for that
	closed atomic.Int32
	late   atomic.Bool
}

func (s *source) Read(p []byte) (int, error) {
	if s.closed.Load() > 0 {
		s.late.Store(true)
	}
	return s.Reader.Read(p)
}

func (s *source) Close() error {
	if s.closed.Add(1) == 1 && s.ended != nil {
		close(s.ended)
	}
	return nil
}

// A seekSource is a source that can seek.
type seekSource struct{ source }

func (s *seekSource) Seek(offset int64, whence int) (int64, error) {
	return s.Reader.(io.Seeker).Seek(offset, whence)
}

const text = "a body of some bytes"

// enough is more than is kept of any body here.
const enough = 1 << 10

// kinds are the ways to read a body again. Each new is a fresh request with the caller's body in
// it.
var kinds = []struct {
	name       string
	keep       int64
	replayable bool
	new        func() (*http.Request, *source)
}{
	{"GetBody", enough, true, func() (*http.Request, *source) {
		s := &source{Reader: strings.NewReader(text)}
		req := httptest.NewRequest("PUT", "http://vendor.example", s)
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
		return req, s
	}},
	{"seek", enough, true, func() (*http.Request, *source) {
		r := strings.NewReader("skipped" + text)
		_, _ = r.Seek(int64(len("skipped")), io.SeekStart)
		s := &seekSource{source{Reader: r}}
		return httptest.NewRequest("PUT", "http://vendor.example", s), &s.source
	}},
	{"buffer", int64(len(text)), true, newOnce},
	{"buffer to spare", enough, true, newOnce},
	{"once", 0, false, newOnce},
	{"buffer too small for the length", int64(len(text)) - 1, false, func() (*http.Request, *source) {
		req, s := newOnce()
		req.ContentLength = int64(len(text))
		return req, s
	}},
}

func newOnce() (*http.Request, *source) {
	s := &source{Reader: strings.NewReader(text)}
	req := httptest.NewRequest("PUT", "http://vendor.example", s)
	return req, s
}

func (s *source) check(t *testing.T, closed int32) {
	t.Helper()
	if got := s.closed.Load(); got != closed {
		t.Errorf("caller's body closed %d times, want %d", got, closed)
	}
	if s.late.Load() {
		t.Error("caller's body read after its end")
	}
}

func mustNext(t *testing.T, b *Body) io.ReadCloser {
	t.Helper()
	body, err := b.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func mustRead(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got, err := io.ReadAll(r)
	if string(got) != want || err != nil {
		t.Errorf("body %q, %v, want %q", got, err, want)
	}
}

func TestBodyIsWholeInEveryAttempt(t *testing.T) {
	for _, kind := range kinds {
		if !kind.replayable {
			continue
		}
		for _, read := range []int64{0, 1, 5, int64(len(text)), 1000} {
			req, s := kind.new()
			before := *req
			var b Body
			b.Open(req, kind.keep)
			for range 3 {
				body := mustNext(t, &b)
				_, _ = io.CopyN(io.Discard, body, read)
				_ = body.Close()
				if !b.Replayable() {
					t.Fatalf("%s: not replayable", kind.name)
				}
			}
			body := mustNext(t, &b)
			mustRead(t, body, text)
			_ = body.Close()
			b.Release()
			b.Close()
			s.check(t, 1)
			if req.Body != before.Body || req.ContentLength != before.ContentLength {
				t.Errorf("%s: caller's request has changed", kind.name)
			}
		}
	}
}

func TestBodyClosesTheCallersOnce(t *testing.T) {
	paths := []struct {
		name string
		walk func(*testing.T, *Body)
	}{
		{"refused", func(*testing.T, *Body) {}},
		{"answered", func(t *testing.T, b *Body) {
			_ = mustNext(t, b).Close()
			b.Release()
		}},
		{"answered, closed by the base later", func(t *testing.T, b *Body) {
			body := mustNext(t, b)
			b.Release()
			b.Close()
			mustRead(t, body, text)
			_ = body.Close()
		}},
		{"closed by the base twice", func(t *testing.T, b *Body) {
			body := mustNext(t, b)
			_ = body.Close()
			_ = body.Close()
			b.Release()
		}},
		{"error", func(t *testing.T, b *Body) { _ = mustNext(t, b).Close() }},
		{"error or panic of a base that closes nothing", func(t *testing.T, b *Body) { mustNext(t, b) }},
		{"closed twice", func(_ *testing.T, b *Body) { b.Close() }},
		{"read after its end", func(t *testing.T, b *Body) {
			body := mustNext(t, b)
			_ = body.Close()
			if _, err := body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
				t.Errorf("Read after Close: %v, want %v", err, http.ErrBodyReadAfterClose)
			}
			b.Release()
		}},
		{"tried again, then refused", func(t *testing.T, b *Body) {
			_ = mustNext(t, b).Close()
			if b.Replayable() {
				mustNext(t, b)
			}
		}},
		{"tried again, not had", func(t *testing.T, b *Body) {
			mustNext(t, b)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = b.Next(ctx)
		}},
	}
	for _, kind := range kinds {
		for _, path := range paths {
			t.Run(kind.name+"/"+path.name, func(t *testing.T) {
				req, s := kind.new()
				var b Body
				b.Open(req, kind.keep)
				if b.Replayable() != kind.replayable {
					t.Errorf("Replayable = %v, want %v", !kind.replayable, kind.replayable)
				}
				path.walk(t, &b)
				b.Close()
				s.check(t, 1)
			})
		}
	}
}

func TestBodyThatIsNotThere(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		var b Body
		b.Open(&http.Request{Body: body}, enough)
		for range 2 {
			if !b.Replayable() {
				t.Error("Replayable = false, want true")
			}
			if got := mustNext(t, &b); got != http.NoBody {
				t.Errorf("Next = %v, want NoBody", got)
			}
		}
		b.Release()
		b.Close()
	}
}

func TestBodyThatCannotBeHadAgain(t *testing.T) {
	errGone := errors.New("gone")
	req, s := newOnce()
	req.GetBody = func() (io.ReadCloser, error) { return nil, errGone }
	var b Body
	b.Open(req, enough)
	_ = mustNext(t, &b).Close()
	if _, err := b.Next(t.Context()); err != errGone {
		t.Errorf("Next: %v, want GetBody's %v", err, errGone)
	}
	b.Close()
	s.check(t, 1)

	req, s = newOnce()
	b = Body{}
	b.Open(req, 0)
	_ = mustNext(t, &b).Close()
	if _, err := b.Next(t.Context()); err != errBodySent {
		t.Errorf("Next: %v, want %v", err, errBodySent)
	}
	b.Close()
	s.check(t, 1)
}

// net/http knows the type of a body in memory: it reaches the base unchanged, in each attempt, and
// needs no GetBody to be read again.
func TestBodyInMemoryIsGivenAsItIs(t *testing.T) {
	buffer, reader, str := bytes.NewBufferString("skipped"+text), bytes.NewReader([]byte("skipped"+text)), strings.NewReader("skipped"+text)
	for _, r := range []io.Reader{buffer, reader, str} {
		_, _ = io.CopyN(io.Discard, r, int64(len("skipped")))
		for _, getBody := range []func() (io.ReadCloser, error){nil, func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(text)), nil
		}} {
			req := httptest.NewRequest("PUT", "http://vendor.example", nil)
			req.Body, req.GetBody = io.NopCloser(r), getBody
			var b Body
			b.Open(req, 0)
			if !b.Replayable() {
				t.Errorf("%T: not replayable", r)
			}
			first := mustNext(t, &b)
			if first != req.Body {
				t.Errorf("%T: the base gets a %T, want the caller's body", r, first)
			}
			_, _ = first.Read(make([]byte, 3))
			for range 2 {
				body := mustNext(t, &b)
				if inMemory(body) == nil {
					t.Errorf("%T: the base gets a %T again, want one in memory", r, body)
				}
				mustRead(t, body, text)
			}
			b.Close()
			if getBody == nil {
				break // r is read
			}
		}
	}
}

// A body that only resembles one of those is not taken for one.
func TestBodyOfAnotherTypeIsWatched(t *testing.T) {
	for _, body := range []io.ReadCloser{
		&source{Reader: strings.NewReader(text)},
		io.NopCloser(io.LimitReader(strings.NewReader(text), 3)),
		io.NopCloser(io.NopCloser(strings.NewReader(text))),
		io.NopCloser(nil),
	} {
		if inMemory(body) != nil {
			t.Errorf("%T is taken for one in memory", body)
		}
	}
}

func TestRenewedBodyIsTheNext(t *testing.T) {
	errGone, made := errors.New("gone"), []*source{}
	req, _ := newOnce()
	req.GetBody = func() (io.ReadCloser, error) {
		if len(made) == 2 {
			return nil, errGone
		}
		made = append(made, &source{Reader: strings.NewReader(text)})
		return made[len(made)-1], nil
	}
	var b Body
	b.Open(req, enough)
	if err := b.Renew(t.Context()); err != nil || len(made) != 0 {
		t.Errorf("Renew before the first attempt: %v, %d made, want none", err, len(made))
	}
	_ = mustNext(t, &b).Close()
	for range 2 {
		if err := b.Renew(t.Context()); err != nil || len(made) != 1 {
			t.Errorf("Renew: %v, %d made, want 1", err, len(made))
		}
	}
	body := mustNext(t, &b)
	mustRead(t, body, text)
	_ = body.Close()
	_ = b.Renew(t.Context()) // for an attempt that is never made
	b.Close()
	for i, s := range made {
		s.check(t, 1)
		if i == 1 && len(made) != 2 {
			t.Errorf("%d made, want 2", len(made))
		}
	}

	b = Body{}
	b.Open(req, enough)
	_ = mustNext(t, &b).Close()
	if err := b.Renew(t.Context()); err != errGone {
		t.Errorf("Renew: %v, want GetBody's %v", err, errGone)
	}
	b.Close()
}

func TestBodyKeepsNoMoreThanItsBound(t *testing.T) {
	req, s := newOnce()
	req.ContentLength = -1
	var b Body
	b.Open(req, int64(len(text))-1)
	if !b.Replayable() {
		t.Error("Replayable before anything was read = false")
	}
	body := mustNext(t, &b)
	mustRead(t, body, text)
	_ = body.Close()
	if b.Replayable() {
		t.Error("Replayable of a body beyond the bound = true")
	}
	if kept := b.rewinder.(*spool).kept; kept != nil {
		t.Errorf("%d bytes kept, want none", len(kept))
	}
	if _, err := b.Next(t.Context()); err == nil {
		t.Error("Next has the body again, want an error")
	}
	b.Close()
	s.check(t, 1)
}

func TestBodyThatSeeksOnlyInName(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var b Body
	b.Open(httptest.NewRequest("PUT", "http://vendor.example", r), 0)
	if b.Replayable() {
		t.Error("Replayable of a pipe = true")
	}
	b.Close()
}

func TestBodyOfAFileBeginsWhereItStood(t *testing.T) {
	name := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(name, []byte("skipped"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Seek(int64(len("skipped")), io.SeekStart)
	var b Body
	b.Open(httptest.NewRequest("PUT", "http://vendor.example", file), enough)
	for range 3 {
		body := mustNext(t, &b)
		mustRead(t, body, text)
		_ = body.Close()
	}
	b.Release()
	b.Close()
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("second Close: %v, want %v", err, os.ErrClosed)
	}
}

func TestBodyWaitsUntilTheBaseHasLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req, s := kinds[1].new()
		var b Body
		b.Open(req, enough)
		first := mustNext(t, &b)
		begin := time.Now()
		go func() {
			time.Sleep(letGoTime / 2)
			_ = first.Close()
		}()
		body := mustNext(t, &b)
		if d := time.Since(begin); d != letGoTime/2 {
			t.Errorf("rewound after %v, want %v", d, letGoTime/2)
		}
		mustRead(t, body, text)
		b.Close()
		s.check(t, 1)
	})
}

// A base that stands in for a server may never close a body.
func TestBodyIsTakenFromABaseThatKeepsIt(t *testing.T) {
	for _, kind := range kinds[1:4] {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				req, s := kind.new()
				var b Body
				b.Open(req, kind.keep)
				first := mustNext(t, &b)
				begin := time.Now()
				body := mustNext(t, &b)
				if d := time.Since(begin); d != letGoTime {
					t.Errorf("rewound after %v, want %v", d, letGoTime)
				}
				if n, err := first.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
					t.Errorf("Read by the attempt before: %d, %v, want %v", n, err, http.ErrBodyReadAfterClose)
				}
				_ = first.Close()
				mustRead(t, body, text)
				b.Close()
				s.check(t, 1)
			})
		})
	}
}

func TestBodyWaitsForAReadUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := &source{Reader: r}
		var b Body
		b.Open(httptest.NewRequest("PUT", "http://vendor.example", s), enough)
		first := mustNext(t, &b)
		begin := time.Now()
		go func() { _, _ = first.Read(make([]byte, 100)) }()
		synctest.Wait()
		_ = first.Close()
		go func() {
			time.Sleep(letGoTime / 2)
			_, _ = io.WriteString(w, text)
			_ = w.Close()
		}()
		body := mustNext(t, &b)
		if d := time.Since(begin); d != letGoTime/2 {
			t.Errorf("rewound after %v, want %v", d, letGoTime/2)
		}
		mustRead(t, body, text)
		b.Close()
		s.check(t, 1)
	})
}

// A stream that waits for the response in hand is not waited for.
func TestBodyWhoseReadNeverEndsIsNotHadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var b Body
		b.Open(httptest.NewRequest("PUT", "http://vendor.example", r), enough)
		first := mustNext(t, &b)
		got := make(chan error)
		go func() { _, err := first.Read(make([]byte, 100)); got <- err }()
		synctest.Wait()
		begin := time.Now()
		if err := b.Renew(t.Context()); err != errBodyHeld {
			t.Errorf("Renew: %v, want %v", err, errBodyHeld)
		}
		if d := time.Since(begin); d != letGoTime {
			t.Errorf("Renew gave up after %v, want %v", d, letGoTime)
		}
		_ = first.Close()
		b.Close()
		if err := <-got; err != io.ErrClosedPipe {
			t.Errorf("Read: %v, want %v", err, io.ErrClosedPipe)
		}
		if _, err := io.WriteString(w, text); err != io.ErrClosedPipe {
			t.Errorf("the writer gets %v, want %v", err, io.ErrClosedPipe)
		}
	})
}

func TestBodyIsNotClosedUnderARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := &source{Reader: r}
		var b Body
		b.Open(httptest.NewRequest("PUT", "http://vendor.example", s), enough)
		body := mustNext(t, &b)
		go func() { _, _ = body.Read(make([]byte, 100)) }()
		synctest.Wait()
		b.Close()
		s.check(t, 0)
		_ = w.Close()
		synctest.Wait()
		s.check(t, 1)
	})
}

// A base ends a blocking Read by closing the body: at once if nothing of it is kept, otherwise when
// no attempt follows.
func TestBodyIsClosedByTheBaseUnderItsRead(t *testing.T) {
	for _, keep := range []int64{0, enough} {
		for _, end := range []func(*Body){(*Body).Release, (*Body).Close} {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				defer w.Close()
				var b Body
				b.Open(httptest.NewRequest("PUT", "http://vendor.example", r), keep)
				body := mustNext(t, &b)
				got := make(chan error, 1)
				go func() { _, err := body.Read(make([]byte, 100)); got <- err }()
				synctest.Wait()
				_ = body.Close()
				synctest.Wait()
				if ended := len(got) == 1; ended != (keep == 0) {
					t.Errorf("Read has ended: %v", ended)
				}
				end(&b)
				if err := <-got; err != io.ErrClosedPipe {
					t.Errorf("Read: %v, want %v", err, io.ErrClosedPipe)
				}
			})
		}
	}
}

// endsOnce returns an end of file once, and an error after that.
type endsOnce struct {
	io.Reader
	ended bool
}

func (r *endsOnce) Read(p []byte) (int, error) {
	if r.ended {
		return 0, errors.New("read after its end")
	}
	n, err := r.Reader.Read(p)
	r.ended = err == io.EOF
	return n, err
}

func TestBodyIsNotReadAfterItsEnd(t *testing.T) {
	req, s := newOnce()
	s.Reader = &endsOnce{Reader: s.Reader}
	var b Body
	b.Open(req, 100)
	for range 3 {
		body := mustNext(t, &b)
		mustRead(t, body, text)
		_ = body.Close()
	}
	b.Close()
}

func TestBodyWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req, s := kinds[1].new()
		var b Body
		b.Open(req, enough)
		first := mustNext(t, &b)
		ctx, cancel := context.WithTimeout(t.Context(), letGoTime/2)
		defer cancel()
		begin := time.Now()
		_, err := b.Next(ctx)
		if d := time.Since(begin); d != letGoTime/2 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next: %v after %v, want %v after %v", err, d, context.DeadlineExceeded, letGoTime/2)
		}
		b.Close()
		s.check(t, 1)
		_ = first.Close()
		s.check(t, 1)
	})
}

// A server that answers before it has read the body: net/http continues to send after RoundTrip has
// returned.
func TestBodyUnderAServerThatAnswersEarly(t *testing.T) {
	want := bytes.Repeat([]byte(text), 1<<16)
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1)%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if got, err := io.ReadAll(r.Body); !bytes.Equal(got, want) {
			t.Errorf("server read %d bytes, %v, want %d", len(got), err, len(want))
		}
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()

	bodies := []struct {
		name string
		new  func(*http.Request) *source
	}{
		{"GetBody", func(req *http.Request) *source {
			s := &source{Reader: bytes.NewReader(want), ended: make(chan struct{})}
			req.Body = s
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(want)), nil }
			return s
		}},
		{"seek", func(req *http.Request) *source {
			s := &seekSource{source{Reader: bytes.NewReader(want), ended: make(chan struct{})}}
			req.Body = s
			return &s.source
		}},
		{"buffer", func(req *http.Request) *source {
			s := &source{Reader: bytes.NewReader(want), ended: make(chan struct{})}
			req.Body = s
			return s
		}},
	}
	for _, body := range bodies {
		t.Run(body.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), "PUT", server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			s := body.new(req)
			resp := sendAgain(t, base, req, int64(len(want)))
			Drain(resp)
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d, want 200", resp.StatusCode)
			}
			base.CloseIdleConnections()
			<-s.ended
			s.check(t, 1)
		})
	}
}

// sendAgain sends req up to four times, until the server has processed it.
func sendAgain(t *testing.T, base http.RoundTripper, req *http.Request, keep int64) *http.Response {
	t.Helper()
	var body Body
	body.Open(req, keep)
	defer body.Close()
	for number := 1; ; number++ {
		ctx, cancel := context.WithCancel(req.Context())
		attempt := req.WithContext(ctx)
		var err error
		if attempt.Body, err = body.Next(req.Context()); err != nil {
			t.Fatal(err)
		}
		resp, err := base.RoundTrip(attempt)
		if number == 4 || err == nil && resp.StatusCode < 500 {
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cancel)
			body.Release()
			return resp
		}
		if err == nil {
			Drain(resp)
		}
		cancel()
	}
}

func TestBodyUnderManyHands(t *testing.T) {
	for _, kind := range kinds[:4] {
		for range 50 {
			req, s := kind.new()
			var b Body
			b.Open(req, kind.keep)
			var bases sync.WaitGroup
			for range 4 {
				body := mustNext(t, &b)
				bases.Go(func() { _, _ = io.Copy(io.Discard, body); _ = body.Close() })
				bases.Go(func() { _ = body.Close() })
			}
			b.Release()
			b.Close()
			bases.Wait()
			if got := s.closed.Load(); got != 1 {
				t.Fatalf("%s: caller's body closed %d times, want 1", kind.name, got)
			}
		}
	}
}

func TestFirstAttemptsBodyAllocatesNothing(t *testing.T) {
	req, _ := kinds[0].new()
	b, ctx := new(Body), t.Context()
	if n := testing.AllocsPerRun(100, func() {
		*b = Body{}
		b.Open(req, enough)
		body, _ := b.Next(ctx)
		_ = body.Close()
		b.Release()
		b.Close()
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkBodyFirstAttempt(b *testing.B) {
	b.ReportAllocs()
	req, _ := kinds[0].new()
	body, ctx := new(Body), b.Context()
	for b.Loop() {
		*body = Body{}
		body.Open(req, enough)
		r, _ := body.Next(ctx)
		_ = r.Close()
		body.Release()
		body.Close()
	}
}
