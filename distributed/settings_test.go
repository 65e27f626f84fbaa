package distributed

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/throttle"
)

// It connects to no Redis.
func newStore(t *testing.T) *Store {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	s := New(rdb, "company")
	s.Logger = slog.New(slog.DiscardHandler)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestUselessSettingsAreErrors(t *testing.T) {
	for want, set := range map[string]func(*Store){
		"Share NaN":                func(s *Store) { s.Share = math.NaN() },
		"Replicas -1":              func(s *Store) { s.Replicas = -1 },
		"BreakAfter -1":            func(s *Store) { s.BreakAfter = -1 },
		"BreakFor -1ns":            func(s *Store) { s.BreakFor = -1 },
		"unknown OnLoss loss(3)":   func(s *Store) { s.OnLoss = FailClosed + 1 },
		"Lease 1h0m0.000000001s":   func(s *Store) { s.Lease = time.Hour + 1 },
		"Lease 49.999999ms":        func(s *Store) { s.Lease = 50*time.Millisecond - 1 }, // no call could renew it
		"Deadline 2562047h47m16.8": func(s *Store) { s.Deadline = math.MaxInt64 },        // no permit would arrive in time
	} {
		s := newStore(t)
		set(s)
		if _, err := s.Limiter("k", throttle.LeakyBucket(1, time.Second)); err == nil || !strings.Contains(err.Error(), "distributed: "+want) {
			t.Errorf("Limiter = %v, want an error of %s", err, want)
		}
	}
}

func TestBreakerOpensLateIfItShould(t *testing.T) {
	s := newStore(t)
	s.BreakAfter = math.MaxInt/2 + 1 // zero in its last 32 bits
	if set, err := s.settings(); err != nil || set.BreakAfter < 1_000_000 {
		t.Errorf("the breaker opens after %d failures, %v", set.BreakAfter, err)
	}
}
