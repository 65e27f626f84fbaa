package reserve

import (
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/throttle"
)

// newHub returns what the lanes of a store share, with the defaults of a store's settings.
func newHub(t *testing.T, client redis.UniversalClient) *call.Hub {
	hub := call.NewHub(client, t.Name(), func() *slog.Logger { return slog.New(slog.DiscardHandler) })
	hub.Set = call.Settings{
		Policy: "local", Share: 0.5, Horizon: 100 * time.Millisecond,
		Deadline: 50 * time.Millisecond, MaxDeadline: 500 * time.Millisecond, FirstDeadline: time.Second,
		BreakAfter: 3, BreakFor: 500 * time.Millisecond, Lease: 10 * time.Second,
	}
	t.Cleanup(hub.Close)
	return hub
}

// open returns a limiter of the lane "lane", which is closed with the hub.
func open(t *testing.T, hub *call.Hub, limits ...throttle.Limit) *Limiter {
	t.Helper()
	l, err := New(hub, "lane", limits)
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Attach(l.Lane, l, l.Attached); err != nil {
		t.Fatal(err)
	}
	return l
}

// inHand returns how many permits are in hand.
func inHand(l *Limiter) int {
	n, _, _ := l.Inspect()
	return n
}
