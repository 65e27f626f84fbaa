package shaping

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Every request counts in its tenant's share, even one for nothing.
func TestEveryCallerIsCharged(t *testing.T) {
	perSecond, perMinute := throttle.LeakyBucket(10, time.Second), throttle.TokenBucket(6000, time.Minute, 100)
	for _, c := range []struct {
		name   string
		limits []throttle.Limit
		n      int
		each   each
		want   float64
	}{
		{"one permit", []throttle.Limit{perSecond}, 1, nil, 0.1},
		{"none", []throttle.Limit{perSecond}, 0, nil, 0.001},
		{"none of two limits", []throttle.Limit{perSecond, perMinute}, 0, each{0, 0}, 0.001},
		{"many of the faster", []throttle.Limit{perSecond, perMinute}, 0, each{0, 50}, 0.5},
		{"no limits", nil, 1, nil, 1},
		{"no limits, many of one", nil, 0, each{1, 600}, 600},
		{"no limits, none", nil, 0, nil, 0.01},
	} {
		t.Run(c.name, func(t *testing.T) {
			limiter, err := throttle.Local{}.Limiter("test", c.limits...)
			if err != nil {
				t.Fatal(err)
			}
			if got := NewQueue(limiter).burden(&waiter{n: c.n, each: &c.each}); got != c.want {
				t.Errorf("burden = %g, want %g", got, c.want)
			}
		})
	}
}

// A flood of callers without permits delays another tenant's one call by a hundred of them at most.
func TestFloodWithoutPermitsDelaysOthersALittle(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("test", throttle.LeakyBucket(10, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	q, l := NewQueue(limiter), &line{}
	for i := range 1000 {
		w := &waiter{place: place{throttle.Instant(i), 1}, deadline: throttle.Never}
		w.cost = q.burden(w)
		l.enter(w, urgency{tenant: "free"})
	}
	paying := stood(l, urgency{tenant: "paying"}, 1000, 0.1)
	second := stood(l, urgency{tenant: "paying"}, 1001, 0.1)
	before := 0
	for w := l.first(); w != second; w = l.first() {
		if l.depart(w); w != paying {
			before++
		}
	}
	if before > 101 {
		t.Errorf("%d callers without permits departed before the second paying one, want 101 at most", before)
	}
}
