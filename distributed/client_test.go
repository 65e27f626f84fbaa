package distributed_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A scribe keeps the lines that the Redis client logs by itself.
type scribe struct {
	mu    sync.Mutex
	lines []string
}

func (s *scribe) Printf(_ context.Context, format string, v ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, v...))
}

// A store reports an outage through its own logger. Its client, of a single node or a Cluster,
// writes nothing elsewhere. A failed dial is logged as such.
func TestClientWritesNothingPastTheLogger(t *testing.T) {
	server := redistest.Start(t)
	cluster := redistest.StartCluster(t, 3)
	for what, test := range map[string]struct {
		place place
		kill  func()
	}{
		"single":  {place{Addrs: []string{server.Addr()}}, server.Kill},
		"cluster": {place{Addrs: cluster.Addrs(), Cluster: true}, func() { cluster.Server(cluster.Owner(laneKey)).Kill() }},
	} {
		t.Run(what, func(t *testing.T) {
			given := test.place.client()
			defer given.Close()
			store := distributed.New(given, "fleet")
			store.Replicas = 1
			store.Deadline, store.MaxDeadline = patience, patience
			var told diary
			store.Logger = told.logger()
			defer store.Close()
			l, err := store.Limiter("lane", throttle.TokenBucket(1000, time.Second, 2))
			if err != nil {
				t.Fatal(err)
			}
			q := shaping.NewQueue(l)
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			var written scribe
			redis.SetLogger(&written)
			defer redis.SetLogger(&driver)
			test.kill()
			const failures = distributed.DefaultBreakAfter + 3
			await(t, "calls to fail, and probes", func() bool {
				if err := q.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				s := l.State(q.Now()).Store
				return s.Lost && s.Failures >= failures
			})
			if s := l.State(q.Now()).Store; s.Cause != "refused" {
				t.Errorf("lost for %q, want refused", s.Cause)
			}
			written.mu.Lock()
			defer written.mu.Unlock()
			if len(written.lines) > 0 {
				t.Errorf("%d lines of %d calls that failed, the first of them %s", len(written.lines), failures, written.lines[0])
			}
		})
	}
}
