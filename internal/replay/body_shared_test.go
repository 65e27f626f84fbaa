package replay

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A shared is a body that GetBody rewinds and returns again, as connect-go does. A Read at its end
// takes some time.
type shared struct {
	slow    time.Duration
	closing time.Duration // how long Close takes

	mu     sync.Mutex
	r      *strings.Reader
	closed bool
}

func (s *shared) Read(p []byte) (int, error) {
	s.mu.Lock()
	ends := s.r.Len() == 0
	s.mu.Unlock()
	if ends {
		time.Sleep(s.slow)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errors.New("read after Close")
	}
	return s.r.Read(p)
}

func (s *shared) Close() error {
	time.Sleep(s.closing)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *shared) again() (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.r.Seek(0, io.SeekStart)
	s.closed = false
	return s, err
}

// A body that is one value in all attempts is reused once the previous attempt no longer reads it.
// That attempt does not close it afterwards.
func TestBodyOfOneValueIsNotSharedByTwoAttempts(t *testing.T) {
	tests := []struct {
		name                 string
		slow, closing, close time.Duration // close: when the base closes it, after reading it; zero: never
		want                 time.Duration
		err                  error
	}{
		{"the base is about to close it", 0, 0, lookTime / 2, lookTime / 2, nil},
		{"the base looks for its end", lookTime / 2, 0, 1, lookTime/2 + 1, nil},
		{"the base never closes it", 0, 0, 0, lookTime, nil},
		{"a Read takes long", 10 * lookTime, 0, time.Hour, 10 * lookTime, nil},
		{"Close takes long", 0, 3 * lookTime, 1, 3*lookTime + 1, nil},
		{"a Read blocks", time.Hour, 0, time.Hour, lookTime + letGoTime, errBodyHeld},
		{"Close blocks", 0, time.Hour, 1, lookTime + letGoTime, errBodyHeld},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shared{slow: tt.slow, closing: tt.closing, r: strings.NewReader(text)}
				req := httptest.NewRequest("POST", "http://vendor.example", s)
				req.GetBody = s.again
				var b Body
				b.Open(req, 0)
				first := mustNext(t, &b)
				_, _ = io.CopyN(io.Discard, first, int64(len(text)))
				begin := time.Now()
				var base sync.WaitGroup
				base.Go(func() {
					_, _ = first.Read(make([]byte, 1))
					if tt.close > 0 {
						time.Sleep(tt.close)
						_ = first.Close()
					}
				})
				synctest.Wait()
				err := b.Renew(t.Context())
				if d := time.Since(begin); d != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("Renew = %v after %v, want %v after %v", err, d, tt.err, tt.want)
				}
				if err == nil {
					second := mustNext(t, &b)
					time.Sleep(time.Minute)
					mustRead(t, second, text)
					_ = second.Close()
				}
				b.Close()
				base.Wait()
			})
		})
	}
}

// A GetBody may rewind one reader in memory: no attempt reads that itself.
func TestReaderInMemoryThatGetBodyRewindsIsReadByNoAttempt(t *testing.T) {
	r := strings.NewReader(text)
	req := httptest.NewRequest("POST", "http://vendor.example", nil)
	req.Body, req.GetBody = io.NopCloser(r), func() (io.ReadCloser, error) {
		_, err := r.Seek(0, io.SeekStart)
		return io.NopCloser(r), err
	}
	var b Body
	b.Open(req, 0)
	first := mustNext(t, &b)
	_, _ = io.CopyN(io.Discard, first, 3)
	second := mustNext(t, &b)
	_, _ = io.CopyN(io.Discard, second, 3)
	third := mustNext(t, &b)
	mustRead(t, first, text[3:])
	mustRead(t, second, text[3:])
	mustRead(t, third, text)
	b.Close()
}

// A GetBody that returns nil ends the attempts, not the process.
func TestGetBodyThatReturnsNothingIsAnError(t *testing.T) {
	req := httptest.NewRequest("POST", "http://vendor.example", io.NopCloser(strings.NewReader(text)))
	req.GetBody = func() (io.ReadCloser, error) { return nil, nil }
	var b Body
	b.Open(req, 0)
	defer b.Close()
	mustRead(t, mustNext(t, &b), text)
	if err := b.Renew(t.Context()); !errors.Is(err, errNoBody) {
		t.Errorf("Renew = %v, want %v", err, errNoBody)
	}
}
