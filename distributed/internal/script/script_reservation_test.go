package script

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A caller is one replica that asks the script for runs, at instants that the
// test gives in microseconds.
type caller struct {
	bench   *bench
	lane    string
	limits  *EncodedLimits
	seen    Echo
	period  int64
	field   LaneField
	horizon time.Duration
	most    int
	latest  time.Duration // after now, of a permit; zero: any
	alive   int           // callers that it knows
	lesson  *Update       // nil: learns nothing
}

const (
	dawn         = 1_767_225_600_000_000 // midnight in UTC, µs
	second       = 1_000_000
	asTolerance  = 10 * time.Millisecond
	longTogether = time.Hour
)

func (b *bench) caller(lane string, limits ...throttle.Limit) *caller {
	return &caller{bench: b, lane: lane, limits: mustEncode(b, limits...), horizon: longTogether, most: 128}
}

// ask is one call.
func (c *caller) ask(now int64, groups []Group, reports ...Report) Reply {
	lesson := c.lesson
	got := c.bench.call(c.lane, &Request{
		now: now, Tolerance: asTolerance, Horizon: c.horizon, Most: c.most, Seen: c.seen, Period: c.period, Alive: c.alive,
		Limits: c.limits, Groups: groups, Reports: reports, Latest: cmp.Or(c.latest, mostOwed*time.Microsecond), Field: c.field, Update: lesson,
	})
	c.seen, c.period = got.Seen, got.Period
	if lesson != nil {
		next := *lesson
		next.Seen, next.Snapshot = got.Learned.Field, nil
		if next.Seen.To < next.Place {
			next.Snapshot = []byte("lost")
		}
		next.Place, next.Ordinal = max(next.Place, next.Seen.To), max(next.Ordinal, got.Learned.First+got.Count())
		c.lesson = &next
	}
	if got.Field.Text != "" {
		c.field = got.Field
	}
	return got
}

// line is a group of n that ask for one permit of each limit.
func (c *caller) line(count int) []Group {
	return []Group{{Count: count, Costs: slices.Repeat([]int64{1}, len(c.limits.Limits))}}
}

// run asks for n permits and returns the instants, one for each permit, after now.
func (c *caller) run(now int64, count int, reports ...Report) []int64 {
	var instants []int64
	for _, p := range c.ask(now, c.line(count), reports...).Permits {
		instants = append(instants, slices.Repeat([]int64{p.At - now}, p.Count)...)
	}
	return instants
}

func (c *caller) refund(at int64, costs ...int64) Report {
	return Report{Kind: ReportRefund, At: at, Epoch: c.seen.Epoch, Costs: costs}
}

func wants(t *testing.T, what string, got []int64, want ...int64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// A departure is one permit of a caller.
type departure struct {
	at    int64 // when it leaves
	dated int64 // date of the permit, possibly before the call
	costs []int64
}

// The limits hold for promised instants, whatever callers ask for and however far ahead permits are
// dated.
func TestPromisesKeepTheLimits(t *testing.T) {
	b := newBench(t)
	algorithms := []throttle.Algorithm{
		throttle.AlgorithmTokenBucket, throttle.AlgorithmLeakyBucket, throttle.AlgorithmFixedWindow,
		throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow,
	}
	for seed := range uint64(lives()) {
		random := rand.New(rand.NewPCG(seed, 3))
		limits := make([]throttle.Limit, 1+random.IntN(2))
		for i := range limits {
			a := algorithms[random.IntN(len(algorithms))]
			limits[i] = throttle.Limit{Algorithm: a, Permits: 1 + random.IntN(20), Per: time.Duration(1+random.IntN(2000)) * time.Millisecond}
			if a == throttle.AlgorithmTokenBucket {
				limits[i].Burst = 1 + random.IntN(10)
			}
		}
		log := promises(b, random, limits)
		for i, l := range limits {
			if broken := brokenBy(l, i, log); broken != "" {
				t.Fatalf("run %d: limit %v: %s\n%v", seed, l, broken, log)
			}
		}
	}
}

// promises runs several callers that take runs, give permits back and are paused. It returns their
// certain departures.
func promises(b *bench, random *rand.Rand, limits []throttle.Limit) []departure {
	lane, now := b.lane(), int64(dawn)
	callers := make([]*caller, 1+random.IntN(4))
	for i := range callers {
		callers[i] = b.caller(lane, limits...)
		callers[i].horizon = time.Duration(random.IntN(2000)) * time.Millisecond
		callers[i].most = 1 + random.IntN(20)
	}
	var log []departure
	for range 40 {
		now += random.Int64N(200_000)
		c := callers[random.IntN(len(callers))]
		var reports []Report
		switch {
		case random.IntN(20) == 0:
			reports = append(reports, Report{Kind: ReportPause, Span: random.Int64N(500_000)})
			log = slices.DeleteFunc(log, func(d departure) bool { return d.at > now }) // void
		case random.IntN(5) == 0 && len(log) > 0:
			i := random.IntN(len(log))
			if d := log[i]; d.dated > now-asTolerance.Microseconds() {
				reports = append(reports, c.refund(d.dated, d.costs...))
				log = slices.Delete(log, i, i+1)
			}
		}
		var groups []Group
		for range 1 + random.IntN(3) {
			g := Group{Count: 1 + random.IntN(8), Age: time.Duration(random.IntN(20)) * time.Millisecond}
			for _, l := range limits {
				g.Costs = append(g.Costs, random.Int64N(int64(min(l.Capacity(), 3))+1))
			}
			if slices.Max(g.Costs) > 0 {
				groups = append(groups, g)
			}
		}
		horizon := c.horizon
		if random.IntN(4) == 0 && len(groups) > 0 {
			groups, c.horizon = groups[:1], 0
			groups[0].Count, groups[0].Age = 1, -time.Duration(1+random.IntN(3000))*time.Millisecond
		}
		got := c.ask(now, groups, reports...)
		c.horizon = horizon
		at := 0
		for _, g := range groups {
			for left := g.Count; left > 0 && at < len(got.Permits); at++ {
				p := got.Permits[at]
				left -= p.Count
				for range p.Count {
					log = append(log, departure{max(p.At, now), p.At, g.Costs})
				}
			}
		}
	}
	return log
}

// brokenBy returns how departures break a limit, found by brute force, or "".
func brokenBy(l throttle.Limit, i int, log []departure) string {
	log = slices.Clone(log)
	slices.SortStableFunc(log, func(a, b departure) int { return int(a.at - b.at) })
	per, most := l.Per.Microseconds(), int64(l.Permits)
	for last := range log {
		end, sum, inWindow, inSpan, before := log[last].at, int64(0), int64(0), int64(0), int64(0)
		for first := last; first >= 0; first-- {
			at, n := log[first].at, log[first].costs[i]
			sum += n
			switch at / per {
			case end / per:
				inWindow += n
			case end/per - 1:
				before += n
			}
			if at > end-per {
				inSpan += n
			}
			burst := int64(max(l.Burst, 1))
			if l.Algorithm == throttle.AlgorithmLeakyBucket {
				for _, d := range log[first : last+1] {
					burst = max(burst, d.costs[i])
				}
			}
			// sum <= burst + T/i, with the tolerance, and a µs of rounding.
			span := end - at + asTolerance.Microseconds() + 1
			if bucket(l) && n > 0 && (sum-burst)*per > span*most {
				return fmt.Sprintf("%d permits from %d to %d", sum, at-dawn, end-dawn)
			}
		}
		for _, d := range log[last+1:] {
			if d.at == end {
				inWindow, inSpan = inWindow+d.costs[i], inSpan+d.costs[i]
			}
		}
		estimate := inWindow + before*(per-end%per)/per
		switch {
		case log[last].costs[i] == 0:
		case l.Algorithm == throttle.AlgorithmFixedWindow && inWindow > most:
			return fmt.Sprintf("%d permits in the window of %d", inWindow, end-dawn)
		case l.Algorithm == throttle.AlgorithmSlidingLog && inSpan > most:
			return fmt.Sprintf("%d permits in the span to %d", inSpan, end-dawn)
		case l.Algorithm == throttle.AlgorithmSlidingWindow && estimate > most:
			return fmt.Sprintf("an estimate of %d at %d", estimate, end-dawn)
		}
	}
	return ""
}

func bucket(l throttle.Limit) bool { return !windows(l.Algorithm) }

func TestRunIsDatedAtTheRate(t *testing.T) {
	b := newBench(t)
	c := b.caller(b.lane(), throttle.TokenBucket(10, time.Second, 3))
	wants(t, "a burst and its rate", c.run(dawn, 6), 0, 0, 0, 100_000, 200_000, 300_000)
	d := b.caller(c.lane, throttle.TokenBucket(10, time.Second, 3))
	wants(t, "the next caller's", d.run(dawn+50_000, 2), 350_000, 450_000)
	c.horizon = 150 * time.Millisecond
	wants(t, "up to the horizon", c.run(dawn+50_000, 5), 550_000, 650_000)
	c.most = 1
	wants(t, "at most one ahead", c.run(dawn+50_000, 5), 750_000)
	c.horizon, c.most = time.Hour, 100
	got := b.call(c.lane, &Request{now: dawn, Tolerance: asTolerance, Horizon: time.Hour, Most: 9, Latest: time.Second, Limits: c.limits, Groups: c.line(5)})
	if want := []Granted{{dawn + 900_000, 1}, {dawn + 1_000_000, 1}}; !slices.Equal(got.Permits, want) || got.First != dawn+1_100_000 {
		t.Errorf("up to a second later: %v, then %d, want %v", got.Permits, got.First-dawn, want)
	}
}

// A permit for a later instant leaves those before it to others, and each of those can be spent once.
func TestPermitForALaterInstantLeavesThoseBeforeIt(t *testing.T) {
	b := newBench(t)
	others := map[throttle.Limit][]int64{
		throttle.LeakyBucket(10, time.Second):    {100_000, 200_000, 400_000, 500_000},
		throttle.TokenBucket(10, time.Second, 1): {100_000, 200_000, 400_000, 500_000},
		throttle.TokenBucket(10, time.Second, 3): {200_000, 300_000, 400_000, 500_000}, // it saves the first
	}
	for l, want := range others {
		later := b.caller(b.lane(), l)
		later.run(dawn, l.Capacity())
		later.horizon = 0
		got := later.ask(dawn, []Group{{Count: 1, Age: -300 * time.Millisecond, Costs: []int64{1}}})
		if permits := []Granted{{dawn + 300_000, 1}}; !slices.Equal(got.Permits, permits) || got.Next[0] != dawn+want[0] {
			t.Errorf("%v: %v, and the next in %d µs, want %v and %d µs", l, got.Permits, got.Next[0]-dawn, permits, want[0])
		}
		wants(t, l.String()+": for others", b.caller(later.lane, l).run(dawn, 4), want...)
	}
}

// A permit for a later instant that comes back can be had for another one, as long as the bucket saves it.
func TestPermitForALaterInstantComesBackForAnother(t *testing.T) {
	b := newBench(t)
	for _, back := range []int64{100_000, 803_000} {
		c := b.caller(b.lane(), throttle.TokenBucket(2, time.Second, 3))
		c.run(dawn, 3)
		c.horizon = 0
		later := func(now, at int64, reports ...Report) []Granted {
			return c.ask(dawn+now, []Group{{Count: 1, Age: time.Duration(now-at) * time.Microsecond, Costs: []int64{1}}}, reports...).Permits
		}
		first, report := later(0, 800_000), c.refund(dawn+800_000, 1)
		report.Kind = ReportStale
		if got := later(back, 900_000, report); first[0].At != dawn+800_000 || got[0].At != dawn+900_000 {
			t.Errorf("after %d µs: %v, then %v", back, first, got)
		}
	}
}

// Trap: of promises that are revoked, one that had come back must not be granted besides the state
// before them all.
func TestRevokedPromisesAreGrantedOnce(t *testing.T) {
	c := newBench(t).caller(laneKey("test", "revoked"), throttle.LeakyBucket(10, time.Second))
	c.lesson = NewUpdate(store.Pacing{Counted: true, TTL: time.Minute})
	c.run(dawn, 5)
	c.ask(dawn, nil, c.refund(dawn+200_000, 1))
	c.lesson.Entry = store.Entry{Data: []byte("fast"), Revoke: true}
	c.ask(dawn, nil)
	c.lesson.Entry = store.Entry{}
	wants(t, "the run after all were revoked", c.run(dawn, 4), 100_000, 200_000, 300_000, 400_000)
}

// Trap: of a fast limit, a request that was sent before its caller knew that the slow pace is revoked
// must not be promised a permit of that pace. All later ones would wait until it falls due.
func TestNothingIsGrantedAtARevokedPace(t *testing.T) {
	b, l := newBench(t), throttle.TokenBucket(1000, time.Second, 5)
	pace := func(every time.Duration) *Update {
		return NewUpdate(store.Pacing{Counted: true, Interval: every, TTL: time.Minute})
	}
	lane := laneKey("test", "stale")
	first, second := b.caller(lane, l), b.caller(lane, l)
	for _, c := range []*caller{first, second} {
		c.limits, c.lesson = c.limits.Learning(), pace(5*time.Second)
	}
	first.run(dawn, 1)
	first.lesson.Entry = store.Entry{Data: []byte("fast"), Revoke: true}
	first.ask(dawn, nil)
	if got := second.ask(dawn+1000, second.line(1)); len(got.Permits) > 0 || got.First != dawn+1000 {
		t.Errorf("%v are granted at the revoked pace, the next at %d, want none, and the next at once", got.Permits, got.First-dawn)
	}
	place := second.lesson.Place
	second.lesson = pace(5 * time.Millisecond)
	second.lesson.Place = place
	wants(t, "the run at the new pace", second.run(dawn+2000, 2), 3_000, 8_000)
}

// Trap: voided promises must not be owed after the pause.
func TestPauseVoidsWhatWasPromisedAndDoesNotOweIt(t *testing.T) {
	b := newBench(t)
	for _, l := range []throttle.Limit{throttle.TokenBucket(10, time.Second, 1), throttle.TokenBucket(10, time.Second, 5), throttle.LeakyBucket(10, time.Second)} {
		c := b.caller(b.lane(), l)
		c.run(dawn, 60) // 6 s of permits
		got := c.ask(dawn+250_000, nil, Report{Kind: ReportPause, Span: 2 * second})
		if got.Paused != dawn+2_250_000 || got.Seen.Epoch != 1 {
			t.Fatalf("%v: paused until %d in epoch %d", l, got.Paused-dawn, got.Seen.Epoch)
		}
		wants(t, l.String()+": the run after a pause", c.run(dawn+300_000, 4), 1_950_000, 2_050_000, 2_150_000, 2_250_000)
	}
	// Permits departed before the pause are still owed.
	c := b.caller(b.lane(), throttle.LeakyBucket(10, time.Second))
	c.ask(dawn, []Group{{Count: 1, Costs: []int64{50}}})
	c.run(dawn, 1)
	c.ask(dawn+1, nil, Report{Kind: ReportPause, Span: 100_000})
	wants(t, "after a departure of five seconds", c.run(dawn+1, 1), 5*second-1)
	// An overspend is still owed as well.
	c = b.caller(b.lane(), throttle.TokenBucket(10, time.Second, 5))
	c.run(dawn, 5)
	c.ask(dawn, nil, Report{Kind: ReportSettle, At: dawn, Costs: []int64{1}, Actual: []int64{31}})
	c.run(dawn, 3)
	c.ask(dawn+1, nil, Report{Kind: ReportPause, Span: 100_000})
	wants(t, "after an overspend of thirty", c.run(dawn+1, 1), 3*second+100_000-1)
}

// A pause delays all callers, even those with new limits and those whose clock has moved back.
func TestPauseHoldsCallersOfOtherLimits(t *testing.T) {
	b := newBench(t)
	b.persist()
	named := func(l throttle.Limit, name string) throttle.Limit { l.Name = name; return l }
	one, two := named(throttle.TokenBucket(100, time.Second, 1), "one"), named(throttle.TokenBucket(10, time.Second, 1), "two")
	window := named(throttle.FixedWindow(1000, time.Second), "window")
	for _, limits := range [][2][]throttle.Limit{{{one}, {two}}, {{window}, {window, one}}, {{one, window}, {two, window}}, {{one, two}, {two}}} {
		for _, step := range []int64{0, 2 * second, 3600 * second} {
			lane := b.lane()
			old, young := b.caller(lane, limits[0]...), b.caller(lane, limits[1]...)
			old.run(dawn, 1)
			young.run(dawn+600_000, 1)
			old.run(dawn+second, 1)
			old.ask(dawn+1_100_000, nil, Report{Kind: ReportPause, Span: 60 * second})
			for _, c := range []*caller{young, old, young} {
				got := c.ask(dawn+2*second-step, c.line(1))
				if got.Paused-got.Now < 50*second || len(got.Permits) > 0 && got.Permits[0].At < got.Paused {
					t.Errorf("%v, the second %v, back by %d s: paused for %.1f s, and granted %v", limits, c == young, step/second, float64(got.Paused-got.Now)/second, got.Permits)
				}
			}
		}
	}
}

// Windows take back the permits that a pause voided when their holders report them.
func TestVoidPromisesComeBackToWindows(t *testing.T) {
	b := newBench(t)
	for _, l := range []throttle.Limit{throttle.FixedWindow(10, time.Minute), throttle.SlidingLog(10, time.Minute)} {
		c := b.caller(b.lane(), throttle.LeakyBucket(10, time.Second), l)
		c.run(dawn, 10)
		void := c.refund(dawn+700_000, 1, 1)
		c.ask(dawn+650_000, nil, Report{Kind: ReportPause, Span: second})
		if c.seen.Epoch != 1 {
			t.Fatalf("the epoch is %d, want 1", c.seen.Epoch)
		}
		c.ask(dawn+650_000, nil, void)
		got := c.ask(dawn+10*second, c.line(3))
		if len(got.Permits) == 0 || got.Permits[0].At >= dawn+60*second {
			t.Errorf("%v: the next is %v, want one of this minute", l, got.Permits)
		}
		if more := got.Permits[1:]; len(more) > 0 && more[0].At < dawn+60*second {
			t.Errorf("%v: more than were returned are granted: %v", l, got.Permits)
		}
	}
}

// Trap: giving back the middle of a run must not let two depart at its end.
func TestRefundOfTheMiddleKeepsItsInstant(t *testing.T) {
	b := newBench(t)
	c := b.caller(b.lane(), throttle.LeakyBucket(10, time.Second))
	wants(t, "the run", c.run(dawn, 5), 0, 100_000, 200_000, 300_000, 400_000)
	wants(t, "after the middle came back", c.run(dawn, 3, c.refund(dawn+200_000, 1)), 200_000, 500_000, 600_000)
	wants(t, "after the end came back", c.run(dawn, 2, c.refund(dawn+600_000, 1)), 600_000, 700_000)
	wants(t, "after the last two came back, the last first", c.run(dawn, 2, c.refund(dawn+700_000, 1), c.refund(dawn+600_000, 1)), 600_000, 700_000)
	wants(t, "after what nobody was promised", c.run(dawn, 1, c.refund(dawn+5*second, 1)), 800_000)
}

// A caller has seen more than the store knows: the state was lost.
func TestEchoRestoresWhatWasLost(t *testing.T) {
	b := newBench(t)
	limit := throttle.TokenBucket(10, time.Second, 20)
	c := b.caller(b.lane(), limit)
	c.run(dawn, 25) // up to half a second ahead
	b.do("FLUSHALL")
	got := c.ask(dawn+100_000, c.line(2))
	if !got.Lost || got.Seen.Generation != dawn+100_000 {
		t.Errorf("the reply %+v does not report a loss", got)
	}
	if want := []Granted{{dawn + 600_000, 1}, {dawn + 700_000, 1}}; !slices.Equal(got.Permits, want) {
		t.Errorf("after a loss: %v, want %v", got.Permits, want)
	}
	if got = c.ask(dawn+100_000, c.line(1)); got.Lost || got.Permits[0].At != dawn+800_000 {
		t.Errorf("after the restored: %+v", got)
	}
	// A caller without an echo gets what a new state has.
	b.do("FLUSHALL")
	if n := len(b.caller(c.lane, limit).run(dawn+100_000, 20)); n != 20 {
		t.Errorf("%d permits of a new state, want its burst", n)
	}
	// Another caller of the lost generation takes it back from the others.
	c.seen = Echo{dawn + 100_000, 0, dawn + 800_000}
	wants(t, "after a caller who saw more", c.run(dawn+100_000, 1), 800_000)
}

func TestLostWritesAreHealedByTheEcho(t *testing.T) {
	b := newBench(t)
	c := b.caller(b.lane(), throttle.LeakyBucket(10, time.Second))
	c.run(dawn, 2)
	old := b.hash(c.lane)
	c.run(dawn, 3) // up to 400 ms
	b.restore(c.lane, old)
	got := c.ask(dawn+1000, c.line(1))
	if !got.Lost || len(got.Permits) != 1 || got.Permits[0].At != dawn+500_000 {
		t.Errorf("after lost writes: %+v, want a permit at 500ms", got)
	}
	// They restore a pause too: its epoch is not given out again.
	old = b.hash(c.lane)
	c.ask(dawn+2000, nil, Report{Kind: ReportPause, Span: second})
	b.restore(c.lane, old)
	if got = c.ask(dawn+3000, nil); got.Seen.Epoch != 1 {
		t.Errorf("after a lost pause the epoch is %d, want 1", got.Seen.Epoch)
	}
}

// An echo never exceeds what a caller can have been granted.
func TestEchoIsClamped(t *testing.T) {
	b := newBench(t)
	c := b.caller(b.lane(), throttle.LeakyBucket(10, time.Second))
	c.seen = Echo{1, 0, dawn + 3600*second}
	wants(t, "after an echo of an hour ahead", c.run(dawn, 1), 2*second+100_000)
}

// A lane whose state expired as good as new has its whole burst.
func TestForgottenLaneIsWhole(t *testing.T) {
	b := newBench(t)
	c := b.caller(b.lane(), throttle.TokenBucket(10, time.Second, 20))
	c.run(dawn, 5)
	ttl := b.do("PTTL", c.lane).(int64)
	b.do("DEL", c.lane)
	got := c.ask(dawn+ttl*1000, c.line(20))
	if got.Lost || len(got.Permits) != 1 || got.Permits[0].Count != 20 {
		t.Errorf("%v after its keys were gone: %+v, want the burst", time.Duration(ttl)*time.Millisecond, got)
	}
}

func (b *bench) hash(key string) map[string]string {
	b.Helper()
	fields, err := b.client.HGetAll(b.Context(), key).Result()
	if err != nil {
		b.Fatal(err)
	}
	return fields
}

func (b *bench) restore(key string, fields map[string]string) {
	b.Helper()
	b.do("DEL", key)
	for field, text := range fields {
		b.do("HSET", key, field, text)
	}
}

// Trap: a remainder that is dropped with each call makes 7,754/s of 7,777/s.
func TestRateIsExactOverManyCallers(t *testing.T) {
	b := newBench(t)
	lane, random := b.lane(), rand.New(rand.NewPCG(1, 1))
	var callers []*caller
	for range 4 {
		callers = append(callers, b.caller(lane, throttle.TokenBucket(7_777, time.Second, 1)))
	}
	var all []int64
	for now := int64(dawn); len(all) < 40_000; now += random.Int64N(20_000) {
		for _, c := range callers {
			for _, at := range c.run(now, 1+random.IntN(64)) {
				all = append(all, at+now)
			}
		}
	}
	slices.Sort(all)
	for i, at := range all {
		if due := (int64(i)*second + 7_776) / 7_777; at-all[0] != due {
			t.Fatalf("permit %d is dated %d µs after the first, want %d", i, at-all[0], due)
		}
	}
}

func TestStrictestClaimOfLateHolds(t *testing.T) {
	b := newBench(t)
	lane := b.lane()
	slow := b.caller(lane, throttle.TokenBucket(100, time.Second, 1))
	fast := b.caller(lane, throttle.TokenBucket(120, time.Second, 1))
	slow.run(dawn, 1)
	last := int64(dawn + 3*second)
	var all []int64
	for now := int64(dawn); now < dawn+20*second; now += 50_000 {
		callers := []*caller{fast}
		if now <= last {
			callers = append(callers, slow)
		}
		for _, c := range callers {
			c.most, c.horizon = 5, 50*time.Millisecond
			got := c.ask(now, c.line(6))
			if strict := now <= last+5*second; got.Differs != (strict && c == fast) && (now < last+5*second || now > last+6*second) {
				t.Fatalf("%v after the last claim of 100/s: differs %v", time.Duration(now-last)*time.Microsecond, got.Differs)
			}
			for _, p := range got.Permits {
				all = append(all, p.At)
			}
		}
	}
	slices.Sort(all)
	count := func(from, to int64) (n int) {
		for _, at := range all {
			if at >= from && at < to {
				n++
			}
		}
		return n
	}
	for from := int64(dawn); from+second <= last+5*second; from += 100_000 {
		if n := count(from, from+second); n > 101 {
			t.Errorf("%d permits in the second from %v on, want 100", n, time.Duration(from-dawn)*time.Microsecond)
		}
	}
	if n := count(dawn+12*second, dawn+13*second); n < 119 || n > 121 {
		t.Errorf("%d permits in a second once no caller claims 100/s, want 120", n)
	}
}

func TestClaimsOfOtherKindsAreTakenOver(t *testing.T) {
	b := newBench(t)
	named := func(l throttle.Limit) throttle.Limit { l.Name = "limit"; return l }
	zoned := throttle.FixedWindow(20, 24*time.Hour)
	zoned.Align = throttle.AlignDay("Europe/Berlin")
	kinds := []throttle.Limit{
		throttle.TokenBucket(100, time.Second, 10), throttle.LeakyBucket(90, time.Second), throttle.FixedWindow(80, time.Second),
		throttle.SlidingLog(70, time.Second), throttle.SlidingWindow(60, time.Second), zoned,
	}
	for seed := range uint64(lives()) / 5 {
		random := rand.New(rand.NewPCG(seed, 4))
		lane, now := b.lane(), int64(dawn)
		for range 40 {
			now += random.Int64N(3 * second)
			c := b.caller(lane, named(kinds[random.IntN(len(kinds))]))
			c.horizon, c.most = time.Second, 10
			var reports []Report
			switch random.IntN(8) {
			case 0:
				reports = append(reports, Report{Kind: ReportPause, Span: random.Int64N(second)})
			case 1:
				reports = append(reports, Report{Kind: ReportResume})
			case 2:
				reports = append(reports, Report{Kind: ReportSettle, At: now, Costs: []int64{1}, Actual: []int64{random.Int64N(5)}})
			}
			if got := c.ask(now, c.line(1+random.IntN(10)), reports...); got.Healed {
				t.Fatalf("run %d: state of %v makes no sense after %v: %v", seed, b.hash(lane), c.limits.Limits[0].limit, got)
			}
		}
	}
}

func TestCallersAreCounted(t *testing.T) {
	b := newBench(t)
	lane := b.lane()
	limit := throttle.TokenBucket(100, time.Second, 1)
	callers := []*caller{b.caller(lane, limit), b.caller(lane, limit), b.caller(lane, limit)}
	for round := range int64(4) {
		for i, c := range callers {
			alive := c.ask(dawn+round*4*second, nil).Alive
			if want := 3; round > 0 && alive != want || round == 0 && alive != i+1 {
				t.Errorf("round %d, caller %d: %d alive", round, i, alive)
			}
		}
	}
	if alive := callers[0].ask(dawn+18*second, nil).Alive; alive != 3 {
		t.Errorf("%d alive soon after two have gone, want 3", alive)
	}
	callers[0].ask(dawn+22*second, nil)
	if alive := callers[0].ask(dawn+27*second, nil).Alive; alive != 1 {
		t.Errorf("%d alive long after two have gone, want 1", alive)
	}
}

func TestTuneTakesOverFromTheHeir(t *testing.T) {
	b := newBench(t)
	lane := b.lane()
	old := throttle.SlidingLog(10, time.Minute).Named("old")
	c := b.caller(lane, old)
	c.run(dawn, 10)
	next := throttle.SlidingLog(12, time.Minute).Named("new")
	d := b.caller(lane, next)
	tune := Report{Kind: ReportTune, Heirs: []string{"old"}}
	wants(t, "what the heir left", d.run(dawn+second, 3, tune), 5*second, 10*second, 59*second)
}
