package limitertest_test

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

// A wrongStore makes wrong limiters over correct ones.
type wrongStore struct{ wrong }

func (s wrongStore) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	var err error
	w := s.wrong
	w.Limiter, err = throttle.Local{}.Limiter(key, limits...)
	return &w, err
}

// wrongStores are what is wrong with the limiters of a store, by the rule that they break.
var wrongStores = map[string]func() wrong{
	"a decision takes no time": func() wrong {
		return asked(func(_ throttle.Instant, r throttle.Request) throttle.Request {
			time.Sleep(time.Millisecond)
			return r
		})
	},
	"a decision takes no time, even for a goroutine left behind": func() wrong {
		return asked(func(_ throttle.Instant, r throttle.Request) throttle.Request {
			go func() { select {} }() // for good
			return r
		})
	},
	"what is called at the same time grants each permit once": func() wrong {
		var busy atomic.Bool
		return wrong{take: func(l throttle.Limiter, now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
			if !busy.CompareAndSwap(false, true) {
				return throttle.Grant{At: now}, nil
			}
			defer busy.Store(false)
			runtime.Gosched()
			return l.Take(now, r)
		}}
	},
	"a permit whose caller slept too long is void": func() wrong { return wrong{tolerance: time.Hour} },
	"permits that come back go to the next at once": func() wrong {
		return wrong{refund: func(throttle.Limiter, throttle.Instant, throttle.Grant, throttle.Request) {}}
	},
}

// A store of wrong limiters fails at the rule that they break.
func TestWrongWaitsFail(t *testing.T) {
	if rule := os.Getenv("LIMITERTEST_WRONG"); rule != "" {
		limitertest.Waiting{Store: func(*testing.T) throttle.Store { return wrongStore{wrongStores[rule]()} }}.Run(t)
		return
	}
	limitertest.Waiting{Store: func(*testing.T) throttle.Store { return wrongStore{} }}.Run(t)
	for _, rule := range slices.Sorted(maps.Keys(wrongStores)) {
		fails(t, "LIMITERTEST_WRONG="+rule, rule)
	}
}
