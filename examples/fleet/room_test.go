package main

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestRoom(t *testing.T) {
	outage, flush := []event{{kind: stopRedis}}, []event{{kind: killReplica}, {kind: flushRedis}}
	for _, tt := range []struct {
		name     string
		limit    throttle.Limit
		events   []event
		burst    int
		inSecond int
	}{
		{"two intervals of tolerance", throttle.TokenBucket(100, time.Second, 10), nil, 12, 112},
		{"10 ms of tolerance", throttle.TokenBucket(1000, time.Second, 10), nil, 20, 1020},
		{"100 ms of tolerance", throttle.LeakyBucket(30, time.Minute), nil, 2, 2},
		{"Redis is lost", throttle.TokenBucket(100, time.Second, 10), outage, 12 + 50 + 8, 170},
		{"its state is lost", throttle.TokenBucket(100, time.Second, 10), flush, 12 + 10, 122},
		{"both, twice", throttle.TokenBucket(100, time.Second, 10), []event{{kind: killRedis}, {kind: killRedis}}, 12 + 50 + 8 + 2*10, 190},
		{"neither", throttle.TokenBucket(100, time.Second, 10), []event{{kind: killReplica}, {kind: refuseCall}}, 12, 112},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := roomFor(tt.limit, 8, tt.events)
			if m.burst() != tt.burst || m.inSecond() != tt.inSecond {
				t.Errorf("burst = %d, in a second %d, want %d and %d", m.burst(), m.inSecond(), tt.burst, tt.inSecond)
			}
		})
	}
}
