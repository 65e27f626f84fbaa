package call

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed/internal/script"
)

// ErrClosed is matched by errors of a store that was closed.
var ErrClosed = errors.New("store is closed")

// ErrUnavailable is matched by errors while Redis is lost and the policy holds all.
var ErrUnavailable = errors.New("shared store is unavailable")

// A Hub is what the lanes of a store share: which of them are open here and, while one
// is, the link to Redis. It is safe for concurrent use.
type Hub struct {
	given     redis.UniversalClient
	Namespace string
	Layout    string // of its keys; only tests set another
	Channel   string // of the messages between replicas
	Logger    func() *slog.Logger
	Set       Settings // not written once a lane is open

	Mu      sync.Mutex
	closed  bool
	open    map[string][]Part // by lane
	Link    *Link             // while one is open
	calling sync.WaitGroup
}

// A Part is open here for a lane: its limiter, or its slots.
type Part interface {
	Close() error
	Deliver(message string) // published for the lane by a replica or the script
	caller() *Caller
	WakeQueue()
}

// NewHub returns a hub over a client of Redis, without lanes.
func NewHub(given redis.UniversalClient, namespace string, logger func() *slog.Logger) *Hub {
	return &Hub{
		given: given, Namespace: namespace, Layout: script.Layout, Channel: script.ChannelName(namespace),
		Logger: logger, open: make(map[string][]Part),
	}
}

// Attach opens a part of a lane, and returns the link.
func (h *Hub) Attach(lane string, p Part, begin func(*Link)) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.closed {
		return fmt.Errorf("distributed: lane %q: %w", lane, ErrClosed)
	}
	if h.Link == nil {
		h.Link = newLink(h)
	}
	begin(h.Link)
	h.open[lane] = append(h.open[lane], p)
	return nil
}

// Detach takes out a part that is closed and has no call in progress. With the last one
// the link is closed.
func (h *Hub) Detach(lane string, p Part) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if rest := slices.DeleteFunc(h.open[lane], func(other Part) bool { return other == p }); len(rest) > 0 {
		h.open[lane] = rest
	} else {
		delete(h.open, lane)
	}
	if len(h.open) == 0 && h.Link != nil {
		link := h.Link
		h.Link = nil
		h.calling.Go(link.close)
	}
}

// Close closes all parts, and waits for their calls.
func (h *Hub) Close() {
	h.Mu.Lock()
	h.closed = true
	var open []Part
	for _, parts := range h.open {
		open = append(open, parts...)
	}
	h.Mu.Unlock()
	for _, p := range open {
		_ = p.Close() // it returns no error
	}
	for _, p := range open {
		p.WakeQueue() // callers in line are refused
	}
	h.calling.Wait()
}

// watched returns any part that is watched, for events of the store itself; nil if no
// part is.
func (h *Hub) watched() *Caller {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for _, parts := range h.open {
		for _, p := range parts {
			if c := p.caller(); c.By.Load() != nil {
				return c
			}
		}
	}
	return nil
}
