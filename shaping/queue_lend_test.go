package shaping_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// lending is a limiter that lends a call, which takes a second and fetches a permit.
type lending struct {
	*metered
	lent, ran int
}

func (l *lending) Lend(now, until throttle.Instant, line iter.Seq[throttle.Request]) func() {
	l.Fetch(now, 1, line)
	l.lent++
	return func() {
		time.Sleep(time.Second)
		l.ran++
		l.bring(1)
	}
}

func (l *lending) Holder(throttle.Instant, iter.Seq[throttle.Request]) int { return -1 }

func TestOnlyACallerAloneIsLentTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lending{metered: newMetered()}
		j := newJournal(t, shaping.NewQueue(l))
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.lent != 1 || l.ran != 1 {
			t.Errorf("%d calls were lent and %d run, want 1 for the first", l.lent, l.ran)
		}
		l.bring(1)
		j.want("a 1s", "b 2s")
	})
}

// A caller that gives up during the call lets it end, and its permit goes to others.
func TestACallerThatGivesUpDuringItsCallLeavesThePermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lending{metered: newMetered()}
		q := shaping.NewQueue(l)
		j := newJournal(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		j.come(ctx, "a", one())
		j.come(t.Context(), "b", one())
		j.want("a 1s canceled", "b 1s")
		if l.lent != 1 || l.ran != 1 || q.Waiting() != 0 {
			t.Errorf("%d calls were lent and %d run, %d wait, want 1, 1 and 0", l.lent, l.ran, q.Waiting())
		}
	})
}

// A slow hook delays no other caller: the call is made before it.
func TestASlowHookHoldsUpNoCallThatWasLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lending{metered: newMetered()}
		q := shaping.NewQueue(l)
		type slow struct{}
		q.Hook = &shaping.Hook{Wait: func(ctx context.Context, _ shaping.Wait) func(error) {
			if ctx.Value(slow{}) != nil {
				time.Sleep(time.Minute)
			}
			return func(error) {}
		}}
		j := newJournal(t, q)
		j.come(context.WithValue(t.Context(), slow{}, true), "a", one())
		j.come(t.Context(), "b", one())
		time.AfterFunc(2*time.Second, func() { l.bring(1) })
		j.want("b 2s", "a 1m1s")
	})
}

func TestAPanicOfTheHookKeepsNoCallFromRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lending{metered: newMetered()}
		q := shaping.NewQueue(l)
		q.Hook = &shaping.Hook{Wait: func(context.Context, shaping.Wait) func(error) { panic("hook") }}
		func() {
			defer func() { _ = recover() }()
			_ = q.Wait(t.Context())
		}()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if l.lent != 1 || l.ran != 1 || q.Waiting() != 0 {
			t.Errorf("%d calls were lent and %d run, %d wait, want 1, 1 and 0", l.lent, l.ran, q.Waiting())
		}
	})
}
