package retries_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A rewound is a body that GetBody rewinds and returns again, as connect-go does. The Read at its
// end is slow.
type rewound struct {
	rewinds chan struct{}
	mu      sync.Mutex
	*strings.Reader
}

func (b *rewound) Read(p []byte) (int, error) {
	b.mu.Lock()
	ends := b.Len() == 0
	b.mu.Unlock()
	if ends {
		select {
		case <-b.rewinds:
		case <-time.After(20 * time.Millisecond):
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Reader.Read(p)
}

func (b *rewound) Close() error { return nil }

func (b *rewound) getBody() (io.ReadCloser, error) {
	b.mu.Lock()
	_, err := b.Seek(0, io.SeekStart)
	b.mu.Unlock()
	select {
	case b.rewinds <- struct{}{}:
	default:
	}
	return b, err
}

// overloaded refuses seven times. net/http may still look for the end of the body then, because the
// refusal has a body of its own.
type overloaded struct {
	mu   sync.Mutex
	seen int
	got  string
}

func (v *overloaded) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen++; v.seen <= 7 {
		w.Header().Set("Retry-After-Ms", "1")
		http.Error(w, "later", http.StatusTooManyRequests)
		return
	}
	body, _ := io.ReadAll(req.Body)
	v.got = string(body)
}

// No two attempts read the body of a GetBody that rewinds one value, and its connection is reused.
// Over HTTP/1.1 a machine that stops for 50 ms loses it, hence the bubble.
func TestBodyThatGetBodyRewindsIsSentAgain(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { sendRewound(t, testserver.Pipe) }) })
	t.Run("HTTP/2.0", func(t *testing.T) { sendRewound(t, testserver.ListenTLS) })
}

func sendRewound(t *testing.T, open func(http.Handler) (*testserver.Server, error)) {
	t.Helper()
	vendor := new(overloaded)
	r := harness.NewRig(t, open, &testserver.Vendor{Handler: vendor}, &weir.Transport{Retry: &backoff.Policy{Delay: backoff.Constant(time.Millisecond)}})
	body := &rewound{Reader: strings.NewReader("hello"), rewinds: make(chan struct{})}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.Server.URL, body)
	req.ContentLength, req.GetBody = 5, body.getBody
	r.Want("POST", r.Do(req), 200)
	if vendor.seen != 8 || vendor.got != "hello" {
		t.Errorf("the vendor saw %d attempts, the last with %q, want 8 with hello", vendor.seen, vendor.got)
	}
	if n := r.Server.Conns(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
