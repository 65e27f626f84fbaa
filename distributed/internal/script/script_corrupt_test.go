package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// corruptions returns a text with each bit of some of its bytes flipped, and with each of its
// numbers replaced by extreme ones.
func corruptions(text string, now int64, stride int) (all []string) {
	for i := 0; i < len(text); i += stride {
		for bit := range 8 {
			flipped := []byte(text)
			flipped[i] ^= 1 << bit
			all = append(all, string(flipped))
		}
	}
	isDigit := func(r rune) bool { return r < '0' || r > '9' }
	at := 0
	for _, word := range strings.FieldsFunc(text, isDigit) {
		at += strings.Index(text[at:], word)
		for _, n := range []int64{0, 1 << 20, 1 << 46, 1<<51 - 1, now + 60*second, now + 365*24*3600*second} {
			all = append(all, text[:at]+fmt.Sprint(n)+text[at+len(word):])
		}
		at += len(word)
	}
	return all
}

// goesOn returns how long callers that ask in turn go without a departure, at most 8 s.
func (s *stepping) goesOn() int64 {
	s.left = nil
	for from, end := s.now, s.now+8*second; s.now < end && len(s.left) == 0; {
		s.pass(second/4, second/8, 1)
		if len(s.left) > 0 {
			return s.left[0] - from
		}
	}
	return 8 * second
}

// Whatever number is in the state, no lane stops for longer than 5 s. No caller restores that
// number once it is deleted.
func TestNoWrongNumberStopsALane(t *testing.T) {
	b := newBench(t)
	b.persist()
	stride := 31
	if *histories > 0 {
		stride = 1
	}
	tried := 0
	paced := pacing{unit: 10_000, den: 1, keep: 60 * second}
	alone := paced
	alone.alone = 1
	for _, c := range []struct {
		limit  throttle.Limit
		learns *pacing
	}{
		{throttle.TokenBucket(100, time.Second, 20), nil}, {throttle.LeakyBucket(100, time.Second), nil}, {throttle.TokenBucket(10, time.Second, 30), nil},
		{throttle.FixedWindow(100, time.Second), nil}, {throttle.SlidingLog(100, time.Second), nil}, {throttle.SlidingWindow(100, time.Second), nil},
		{throttle.TokenBucket(100, time.Second, 20), &paced}, {throttle.TokenBucket(100, time.Second, 20), &alone},
	} {
		limit := c.limit
		s := b.stepping(limit, 2, dawn)
		for _, caller := range s.callers {
			caller.latest = time.Second
			if c.learns != nil {
				caller.limits, caller.lesson = caller.limits.Learning(), &Update{pacing: *c.learns}
			}
		}
		s.pass(3*second, second/20, 3)
		lane, now, callers := s.callers[0].lane, s.now, []caller{*s.callers[0].caller, *s.callers[1].caller}
		log := logKey(lane, "requests-0")
		fields, runs := b.hash(lane), b.client.LRange(t.Context(), log, 0, -1).Val()
		restore := func() {
			b.restore(lane, fields)
			b.do("DEL", log)
			for _, run := range runs {
				b.do("RPUSH", log, run)
			}
			s.now = now
			for i := range callers {
				*s.callers[i].caller = callers[i]
			}
		}
		goesOn := func(what string) {
			tried++
			if stood := s.goesOn(); stood > 5*second {
				t.Errorf("%v: %s: no departure for %.1f s", limit, what, float64(stood)/second)
			}
			b.do("DEL", lane, log)
			if stood := s.goesOn(); stood > 5*second/2 {
				t.Errorf("%v: %s, and then deleted: no departure for %.1f s", limit, what, float64(stood)/second)
			}
			s.pass(6*second, 3*second, 1)
			if alive := s.callers[0].ask(s.now, nil).Alive; alive > 2 {
				t.Errorf("%v: %s, and then deleted: %d callers, want 2", limit, what, alive)
			}
		}
		for field, text := range fields {
			for _, wrong := range corruptions(text, now, stride) {
				restore()
				b.do("HSET", lane, field, wrong)
				goesOn(fmt.Sprintf("%s %q", field, wrong))
			}
		}
		for i, run := range slices.Compact([]int{0, len(runs) / 2, len(runs) - 1}) {
			if len(runs) == 0 {
				break
			}
			for _, wrong := range corruptions(runs[run], now, stride) {
				restore()
				b.do("LSET", log, run, wrong)
				goesOn(fmt.Sprintf("run %d %q", i, wrong))
			}
		}
	}
	t.Logf("%d corruptions", tried)
}
