package hostlocal

import (
	"os"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A change that cannot be written is repeated until it can. It counts once, although the file has no
// state from which to begin again.
func TestUnwrittenChangesCountOnce(t *testing.T) {
	l := NewAt(t.TempDir()+"/weir", "k", throttle.TokenBucket(1, time.Hour, 10)).(*limiter)
	defer func() { _ = l.Close() }()
	now := throttle.InstantOf(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
	g, err := l.Take(now, throttle.Request{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	path := l.path + laneFile
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	full, err := os.Open(path) // nothing can be written to it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	l.mu.Lock()
	file := l.hot.file
	l.hot.file, l.learner.learner = full, new(listed)
	l.mu.Unlock()
	g.Ref.Ordinal = 7
	l.Refund(now, g, throttle.Request{N: 1})
	l.Settle(now, g, throttle.Request{N: 1}, throttle.Request{N: 3})
	for range 10 {
		if g, err := l.Take(now, throttle.Request{N: 1}); err == nil && g.At <= now {
			t.Fatal("a permit is granted that was not written")
		}
	}
	l.mu.Lock()
	l.hot.file = file
	lapsed := len(l.learner.lapsed)
	l.mu.Unlock()
	if _, err := l.Take(now, throttle.Request{N: 1}); err != nil {
		t.Fatal(err)
	}
	if left := l.State(now).Limits[0].Headroom; left != 7 || lapsed != 1 {
		t.Errorf("%v permits are left and %d departures lapsed, want 7 and 1", left, lapsed)
	}
}
