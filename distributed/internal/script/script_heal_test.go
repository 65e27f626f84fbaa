package script

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// everyKind are limits that cover all kinds of state.
func everyKind() []throttle.Limit {
	zoned := throttle.FixedWindow(500, 24*time.Hour)
	zoned.Align = throttle.AlignDay("Europe/Berlin")
	return []throttle.Limit{
		throttle.TokenBucket(7_777, time.Second, 50), throttle.LeakyBucket(150_000, time.Second), throttle.FixedWindow(50, time.Second),
		zoned, throttle.SlidingLog(40, time.Minute), throttle.SlidingWindow(60, time.Minute),
	}
}

// used returns a caller of a lane that stores one of everything: promises, returned permits,
// charges, spacings, other claims.
func (b *bench) used() *caller {
	c := b.caller(b.lane(), everyKind()...)
	looser := everyKind()
	for i := range looser {
		looser[i].Permits *= 2
	}
	now := int64(dawn)
	settled := Report{Kind: ReportSettle, At: now, Costs: []int64{2, 2, 2, 2, 2, 2}, Actual: []int64{1, 1, 1, 1, 1, 3}}
	c.ask(now, c.line(20), settled)
	c.ask(now, c.line(5), Report{Kind: ReportPause, Span: 1000})
	c.ask(now+2000, c.line(8))
	c.ask(now+2000, nil, c.refund(now+2000, 1, 1, 1, 1, 1, 1))
	b.caller(c.lane, looser...).ask(now+2000, nil)
	c.ask(now+2000, c.line(2))
	return c
}

func logOf(lane string) string { return logKey(lane, "requests-3") }

// R19: one call heals any garbage in the state, and loses no more than that state.
func TestR19WrongTypesHealWithinOneCall(t *testing.T) {
	b := newBench(t)
	for _, command := range []string{"SET %s text", "RPUSH %s a b", "SADD %s a", "ZADD %s 1 a", "HSET %s lane x", "XADD %s * a b", "PFADD %s a"} {
		for _, key := range []func(lane string) string{func(lane string) string { return lane }, logOf} {
			c := b.used()
			b.do("DEL", key(c.lane))
			var args []any
			for word := range strings.FieldsSeq(fmt.Sprintf(command, key(c.lane))) {
				args = append(args, word)
			}
			b.do(args...)
			got := c.ask(dawn+3000, c.line(1))
			if !got.Healed || len(got.Permits) == 0 {
				t.Errorf("%s: %+v, want a permit of a healed state", command, got)
			}
			if got = c.ask(dawn+3000, c.line(1)); got.Healed {
				t.Errorf("%s: healed twice", command)
			}
			b.checkKeys(c.lane)
		}
	}
}

func TestR19GarbageInAFieldHealsWithinOneCall(t *testing.T) {
	b := newBench(t)
	random := rand.New(rand.NewPCG(1, 5))
	fields := b.hash(b.used().lane)
	if len(fields) != 8 {
		t.Fatalf("the state is %q, want eight fields", fields)
	}
	for field, text := range fields {
		for _, garbage := range mutations(random, text) {
			c := b.used()
			b.do("HSET", c.lane, field, garbage)
			b.heals(c, fmt.Sprintf("%s %q", field, garbage))
		}
	}
}

func TestR19GarbageInAListHealsWithinOneCall(t *testing.T) {
	b := newBench(t)
	random := rand.New(rand.NewPCG(1, 6))
	for _, garbage := range mutations(random, "1767225600000000 20") {
		for _, at := range []int{0, -1} {
			c := b.used()
			b.do("LSET", logOf(c.lane), at, garbage)
			b.heals(c, fmt.Sprintf("run %q", garbage))
			c = b.used()
			b.do("RPUSH", logOf(c.lane), garbage)
			b.heals(c, fmt.Sprintf("one run more, %q", garbage))
		}
	}
	c := b.used()
	b.do("DEL", logOf(c.lane))
	b.heals(c, "no list")
	c = b.used()
	b.do("DEL", c.lane)
	b.heals(c, "nothing but a list")
}

// heals fails the test if a call fails, or if more than one call heals.
func (b *bench) heals(c *caller, what string) {
	b.Helper()
	now, healed := int64(dawn+3000), 0
	for i := range 3 {
		back := c.refund(now, 1, 1, 1, 1, 1, 1)
		if got := c.ask(now, c.line(3), back, Report{Kind: ReportPause, Span: int64(i)}); got.Healed {
			healed++ // a call reads only the part of a list that it needs
		}
		now += 100_000
	}
	if healed > 1 {
		b.Errorf("%s: healed in %d calls", what, healed)
	}
	b.checkKeys(c.lane)
}

// mutations are ways to corrupt a text.
func mutations(random *rand.Rand, text string) []string {
	all := []string{"", " ", "x", ";", ";;;", "~", "-", "0", "nan", "inf", "1e400", strings.Repeat("9", 400), strings.Repeat("1 ", 9000), text + " 1", text + ";", text + ";z 1", text + ";w 1 1 1", text + ";r 1", text + ";k", text + ";c 1 - b", " " + text}
	if testing.Short() {
		all = all[:3]
	}
	for range lives() / 4 {
		all = append(all, text[:random.IntN(len(text))])
		words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ';' })
		word := words[random.IntN(len(words))]
		other := []string{"", "-1", "0", "1", "1.5", "x", "1e3", "9007199254740993", "4503599627370497", "0x10", "999999999999999999999"}[random.IntN(11)]
		all = append(all, strings.Replace(text, word, other, 1))
	}
	return all
}

// checkKeys tests that every key has a TTL.
func (b *bench) checkKeys(lane string) {
	b.Helper()
	for _, key := range []string{lane, logOf(lane)} {
		ttl := b.do("PTTL", key).(int64)
		if ttl == -1 || ttl > 20*365*24*3600*1000 {
			b.Errorf("the key %s lives for %d ms", key, ttl)
		}
	}
}

// Every key written expires, and not before its content is as good as new.
func TestEveryKeyExpiresWhenItIsWhole(t *testing.T) {
	b := newBench(t)
	per := time.Minute
	for _, l := range []throttle.Limit{
		throttle.TokenBucket(10, per, 10), throttle.LeakyBucket(10, per), throttle.FixedWindow(10, per),
		throttle.SlidingLog(10, per), throttle.SlidingWindow(10, per),
	} {
		c := b.caller(b.lane(), l)
		for i, reports := range [][]Report{
			nil, {{Kind: ReportPause, Span: second}, {Kind: ReportResume}}, {{Kind: ReportRefund, At: dawn + second, Costs: []int64{1}}},
			{{Kind: ReportSettle, At: dawn, Costs: []int64{1}, Actual: []int64{3}}}, {{Kind: ReportLocal, Costs: []int64{2}}},
			{{Kind: ReportPause, Span: 1}},
		} {
			now := dawn + int64(i)*second
			got := c.ask(now, c.line(1), reports...)
			for _, key := range c.limits.Keys(c.lane) {
				ttl := time.Duration(b.do("PTTL", key).(int64)) * time.Millisecond
				if whole := got.Next[0] - now; ttl < 10*time.Second || ttl < time.Duration(whole)*time.Microsecond || ttl > 4*per {
					t.Errorf("%v: after %v the key %s lives for %v", l, reports, key, ttl)
				}
			}
		}
	}
	// A long pause, and a debt.
	c := b.caller(b.lane(), throttle.LeakyBucket(10, time.Second))
	c.ask(dawn, nil, Report{Kind: ReportPause, Span: 3600 * second})
	if ttl := b.do("PTTL", c.lane).(int64); ttl < 3_600_000 || ttl > 3_630_000 {
		t.Errorf("in a pause of an hour the key lives for %d ms", ttl)
	}
	c = b.caller(b.lane(), throttle.LeakyBucket(10, time.Second))
	c.ask(dawn, []Group{{Count: 1, Costs: []int64{36_000}}})
	if ttl := b.do("PTTL", c.lane).(int64); ttl < 3_600_000 || ttl > 3_630_000 {
		t.Errorf("in a debt of an hour the key lives for %d ms", ttl)
	}
}

// Row R19: garbage in a log that another caller's limit has just replaced. An error on it would end
// the call.
func TestR19GarbageInALogThatIsReplacedIsHealed(t *testing.T) {
	b := newBench(t)
	lane := b.lane()
	log, bucket := throttle.SlidingLog(10, time.Hour), throttle.TokenBucket(10, time.Hour, 10)
	log.Name, bucket.Name = "n", "n"
	r := &Request{Tolerance: asTolerance, Horizon: time.Second, Most: 10, Limits: mustEncode(t, log), Groups: []Group{{Count: 5, Costs: []int64{1}}}}
	b.call(lane, r)
	b.do("LSET", logKey(lane, "n"), 0, "garbage")
	r.Limits = mustEncode(t, bucket)
	for range 3 {
		b.call(lane, r)
	}
}
