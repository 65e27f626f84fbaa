package script

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/throttle"
)

// scriptOfBefore is a script without usual calls, as replicas of an earlier version run it.
var scriptOfBefore = redis.NewScript(strings.TrimPrefix(scriptSource, textOf([]module{{"", []string{"usual"}}})))

// A usual call is decided as if it were spelled out: same reply, same state. Between such calls,
// others report, claim other limits, use another clock, or run the earlier script.
func TestUsualCallDecidesAsAnyOther(t *testing.T) {
	b := newBench(t)
	usual, spelled, talking := 0, 0, 0
	for seed := range int64(6 * lives()) {
		h := newPair(b, seed)
		h.live()
		if h.differs != "" {
			t.Fatalf("history %d: %s\n%s", seed, h.differs, strings.Join(h.trace, "\n"))
		}
		usual, spelled, talking = usual+h.usual, spelled+h.spelled, talking+h.talking
	}
	t.Logf("%d usual calls, %d of which the rest decided, and %d in which callers talked", usual, spelled, talking)
	if spelled == 0 || spelled*3 > usual*2 || talking < usual/15 {
		t.Errorf("of %d usual calls the rest decided %d, and callers talked in %d", usual, spelled, talking)
	}
}

// A pair is one history of two lanes: the first uses usual calls if possible, the second spells out
// all calls.
type pair struct {
	bench   *bench
	random  *rand.Rand
	lanes   [2]string
	callers []*pairCaller
	now     int64
	trace   []string
	differs string
	odd     bool         // with other calls in between
	learns  bool         // callers learn together
	talks   bool         // and send much
	pace    store.Pacing // of a caller that has applied all messages

	usual, spelled, talking int
}

// A pairCaller is one of the replicas.
type pairCaller struct {
	limits *EncodedLimits
	seen   Echo
	period int64
	field  LaneField
	alive  int
	before bool // runs the earlier script
	held   []int64

	learns  bool
	place   int64
	ordinal int64
	learned LearnedField
	pace    store.Pacing // by the messages that it has applied
}

func newPair(b *bench, seed int64) *pair {
	h := &pair{bench: b, random: rand.New(rand.NewPCG(uint64(seed), 12)), lanes: [2]string{b.lane(), b.lane()}, now: dawn}
	h.odd, h.learns, h.talks = h.chance(40), h.chance(60), h.chance(50)
	h.think()
	limits := h.limits()
	for i := range 1 + h.random.IntN(3) {
		c := &pairCaller{limits: mustEncode(b, limits...), before: i > 0 && h.chance(30), learns: h.learns && !h.chance(10)}
		if c.learns && h.chance(70) {
			if h.chance(50) {
				c.limits = mustEncode(b, limits[:len(limits)-1]...)
			}
			c.limits = c.limits.Learning()
		}
		h.callers = append(h.callers, c)
	}
	return h
}

// think makes callers that have applied all choose another pace from now on.
func (h *pair) think() {
	rate := []float64{0.7, 1, 3, 7, 100, 7_777, 999_983}[h.random.IntN(7)]
	h.pace = store.Pacing{Unbound: h.chance(95), Reserve: h.random.IntN(9), Interval: time.Duration(float64(time.Second) / rate), TTL: time.Duration(1+h.random.IntN(60)) * time.Second}
	switch h.random.IntN(10) {
	case 0:
		h.pace.Interval = 0
	case 1, 2:
		h.pace.NotBefore = InstantOf(h.now + h.random.Int64N(500_000))
	case 3:
		h.pace.Probe, h.pace.ProbeAfter = h.chance(50), h.random.Int64N(100)
	}
}

// lesson returns a caller's part of what is learned: usually little.
func (h *pair) lesson(c *pairCaller) *Update {
	if h.chance(2) || h.talks && h.chance(10) {
		h.think()
	}
	t := NewUpdate(c.pace)
	if h.talks && h.chance(50) {
		t.Entry.Data = make([]byte, h.random.IntN(60))
	}
	t.Entry.Landed = h.random.IntN(5)
	t.Place, t.Ordinal, t.Seen, t.Lively = c.place, c.ordinal, c.learned, h.talks
	switch h.random.IntN(100) {
	case 0:
		t.Entry.Data = make([]byte, 1+h.random.IntN(20))
		t.Entry.Revoke = h.chance(30)
	case 1:
		t.Entry.Uncounted = h.random.IntN(5)
	case 2:
		t.Snapshot = []byte("snapshot")
	case 3:
		t.Lapsed = 1 + h.random.Int64N(3)
	case 4:
		t.Place += h.random.Int64N(100) // the store has lost what it had
	case 6:
		if h.chance(80) {
			break
		}
		t.Entry.Reading = store.Reading{Ordinal: c.ordinal, Left: h.random.Int64N(50), Landed: h.random.Int64N(100)}
	case 7:
		t.Entry.Refused = h.random.IntN(5)
	case 5:
		t.Ordinal += h.random.Int64N(100)
	}
	return t
}

func (h *pair) chance(percent int) bool { return h.random.IntN(100) < percent }

func (h *pair) limits() []throttle.Limit {
	var limits []throttle.Limit
	for range 1 + h.random.IntN(2) {
		permits := []int{1, 7, 100, 7_777, 999_983}[h.random.IntN(5)]
		per := []time.Duration{time.Second, 7 * time.Second, time.Minute, 24 * time.Hour}[h.random.IntN(4)]
		if h.chance(50) {
			limits = append(limits, throttle.LeakyBucket(permits, per))
		} else {
			limits = append(limits, throttle.TokenBucket(permits, per, 1+h.random.IntN(50)))
		}
	}
	return limits
}

func (h *pair) live() {
	for range 60 {
		h.pass()
		c := h.callers[h.random.IntN(len(h.callers))]
		if h.odd && h.chance(2) {
			if c.limits = mustEncode(h.bench, h.limits()...); c.learns && len(c.limits.Limits) < mostUsual {
				c.limits = c.limits.Learning()
			}
		}
		if h.odd && h.chance(2) {
			h.bench.do("DEL", h.lanes[0], h.lanes[1])
		}
		if h.odd && h.learns && h.chance(2) {
			for _, lane := range h.lanes {
				h.bench.do("HSET", lane, "entries", "garbage")
			}
		}
		if h.call(c, h.request(c)); h.differs != "" {
			return
		}
	}
}

// pass lets time go by, and seldom back.
func (h *pair) pass() {
	l := &h.callers[0].limits.Limits[0]
	switch h.random.IntN(40) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9:
	case 10:
		h.now += 1 + h.random.Int64N(6*second)
	case 11:
		h.now -= h.random.Int64N(300_000) * int64(h.random.IntN(2))
		if h.odd && h.chance(70) {
			h.now += (h.random.Int64N(3) - 1) * 3600 * second // a clock that was set
		}
	case 12, 13, 14:
		h.now += h.random.Int64N(600_000)
	default:
		h.now += 1 + h.random.Int64N(2*max(l.unit/l.den, 1))
	}
}

func (h *pair) request(c *pairCaller) *Request {
	r := &Request{
		now: h.now, Tolerance: time.Duration(h.random.IntN(50)) * time.Millisecond, Horizon: time.Duration(h.random.IntN(2000)) * time.Millisecond,
		Latest: time.Duration(h.random.IntN(5000)) * time.Millisecond, Most: h.random.IntN(20),
		Seen: c.seen, Period: c.period, Alive: c.alive, Field: c.field, Limits: c.limits,
		Groups: []Group{{Count: 1 + h.random.IntN(12)*h.random.IntN(2), Age: time.Duration(h.random.IntN(100)) * time.Millisecond, Costs: make([]int64, len(c.limits.Limits))}},
	}
	if h.chance(5) {
		r.Groups[0].Count = 300
	}
	for i := range r.Groups[0].Costs {
		r.Groups[0].Costs[i] = 1
	}
	if c.learns {
		if r.Update = h.lesson(c); h.chance(10) {
			r.Groups = nil // it only reports
		}
	}
	if !h.odd || len(r.Groups) == 0 {
		return r
	}
	switch h.random.IntN(100) {
	case 0:
		r.Reports = []Report{{Kind: ReportPause, Span: h.random.Int64N(2 * second)}}
	case 1:
		r.Reports = []Report{{Kind: ReportLocal, Costs: r.Groups[0].Costs}}
	case 2:
		r.Reports = []Report{{Kind: ReportResume}}
	case 3, 4:
		if len(c.held) > 0 {
			r.Reports = []Report{{Kind: ReportRefund, At: c.held[len(c.held)-1], Epoch: c.seen.Epoch, Costs: r.Groups[0].Costs}}
			c.held = c.held[:len(c.held)-1]
		}
	case 5:
		r.State = true
	case 6:
		r.Seen.Furthest += h.random.Int64N(second) // it has seen more
	case 7:
		r.Seen.Epoch++
	case 8:
		r.Groups[0].Costs[0] = 2 * int64(h.random.IntN(2)*h.random.IntN(2))
	}
	return r
}

// call makes both lanes decide.
func (h *pair) call(c *pairCaller, r *Request) {
	var got [2]Reply
	for i, lane := range h.lanes {
		one := *r
		one.spelled = i > 0 || c.before
		run := script
		if c.before {
			run = scriptOfBefore
		}
		v, err := run.Run(context.Background(), h.bench.client, one.Keys(lane), one.Args(nil)...).Result()
		if err == nil {
			got[i], err = one.Decode(v)
		}
		if err != nil {
			h.differs = err.Error()
			return
		}
		if one.usual() {
			h.usual++
			if _, decided := v.([]any)[0].(string); !decided {
				h.spelled++
			} else if one.Update != nil && !one.Update.quiet() {
				h.talking++
			}
		}
	}
	if got[0].Field.Text != "" {
		c.field = got[0].Field
		got[0].Field = LaneField{}
	}
	h.trace = append(h.trace, fmt.Sprintf("%d %+v telling %+v before %v: %+v", h.now-dawn, *r, r.Update, c.before, got[1]))
	states := [2]any{h.bench.do("HGETALL", h.lanes[0]), h.bench.do("HGETALL", h.lanes[1])}
	if !reflect.DeepEqual(got[0], got[1]) || !reflect.DeepEqual(states[0], states[1]) {
		h.differs = fmt.Sprintf("the usual call says\n%+v, not\n%+v, and leaves\n%v, not\n%v", got[0], got[1], states[0], states[1])
	}
	c.seen, c.period, c.alive = got[1].Seen, got[1].Period, got[1].Alive
	if c.learns {
		c.learned, c.place, c.pace = got[1].Learned.Field, got[1].Learned.Field.To, h.pace
		c.ordinal = max(c.ordinal, got[1].Learned.First+got[1].Count())
	}
	for _, p := range got[1].Permits {
		c.held = append(c.held, p.At)
	}
}

// An invalid reply to a usual call is an error, and no more is granted than was requested.
func TestUsualReplyThatMakesNoSense(t *testing.T) {
	field, ok := readLaneField("1 2 0 3 4 5 6")
	if !ok || field.generation != 1 || field.epoch != 2 || field.period != 3 || field.alive != 5 || field.till != 6 {
		t.Fatalf("the field is read as %+v, %v", field, ok)
	}
	r := &Request{
		Seen: Echo{1, 2, 0}, Period: 3, Field: field,
		Limits: mustEncode(t, throttle.TokenBucket(1, time.Second, 1)), Groups: []Group{{Count: 1, Costs: []int64{1}}},
	}
	for _, good := range [][]any{
		{"", int64(9), int64(9), int64(0), int64(0), int64(9), int64(1)},
		{"1 2 7 3 4 5 6", int64(5), int64(9), int64(8), int64(8)},
		{"1 2 0 3 4 5 6 0 4", int64(5), int64(9), int64(8), int64(8)},
	} {
		if got, err := r.Decode(good); err != nil || got.Alive != 5 || got.Seen != (Echo{1, 2, 9}) {
			t.Errorf("%v is read as %+v, %v", good, got, err)
		}
	}
	for _, bad := range []any{
		nil, "", []any{}, []any{""}, []any{"", int64(1), int64(1), int64(1)},
		[]any{"", int64(9), int64(9), int64(0), int64(0), int64(9)},
		[]any{"", int64(9), int64(9), int64(0), int64(0), int64(9), int64(0)},
		[]any{"", int64(-9), int64(9), int64(0), int64(0)},
		[]any{"", int64(9), int64(9), int64(0), int64(-1)},
		[]any{"", int64(9), int64(9), int64(0), "0"},
		[]any{"1 2 0 3 4 5", int64(9), int64(9), int64(0), int64(0)},
		[]any{"1 2 0 3 4 5 x", int64(9), int64(9), int64(0), int64(0)},
		[]any{"1 2 0 3 4 9999999999 6", int64(9), int64(9), int64(0), int64(0)},
		[]any{"1 2 0 3 4 5 6 1 0", int64(9), int64(9), int64(0), int64(0)},
	} {
		if got, err := r.Decode(bad); err == nil {
			t.Errorf("%v is read as %+v", bad, got)
		}
	}
}
