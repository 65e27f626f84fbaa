package throttle_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// In any year the window of an instant holds it, and begins with the day of the zone. It has the
// length of a day or a month.
func TestCalendarWindowsOfAnyYearHoldTheirInstants(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	instants := 300
	if testing.Short() {
		instants = 30
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Africa/Monrovia", "Pacific/Apia"} {
		loc := zone(t, name)
		for range instants {
			at := time.Date(1700+random.IntN(540), 1, 1+random.IntN(365), random.IntN(24), random.IntN(60), random.IntN(60), random.IntN(1e9), loc)
			for _, l := range []throttle.Limit{
				aligned(throttle.FixedWindow(1, 24*time.Hour), throttle.AlignDay(name)),
				aligned(throttle.FixedWindow(1, 31*24*time.Hour), throttle.AlignMonth(name)),
			} {
				start, end := l.Window(at)
				if start.After(at) || !end.After(at) || end.Sub(start) > l.Per+26*time.Hour {
					t.Fatalf("%v: the window of %v is from %v to %v", l, at, start, end)
				}
				if before := start.Add(-1).In(loc); before.Day() == start.In(loc).Day() {
					t.Fatalf("%v: the window of %v begins at %v, within a day", l, at, start.In(loc))
				}
				limiter, now := throttle.NewAt(l), throttle.InstantOf(at)
				_, _ = limiter.Take(now, throttle.Request{N: 1})
				if next, _ := limiter.Take(now, throttle.Request{N: 1}); next.At != throttle.InstantOf(end) {
					t.Fatalf("%v: used up at %v, the next one is at %d, want %d", l, at, next.At, throttle.InstantOf(end))
				}
			}
		}
	}
}

// If clocks go back at a minute past midnight, a day begins, ends for an hour, and begins again.
// Its window holds the first minute too.
func TestWindowOfADayThatBeginsTwiceHoldsItsFirstMinute(t *testing.T) {
	l := aligned(throttle.FixedWindow(1, 24*time.Hour), throttle.AlignDay("America/Moncton"))
	first := time.Date(1993, 10, 31, 3, 0, 30, 0, time.UTC) // 00:00:30, before clocks go back
	want := time.Date(1993, 11, 1, 4, 0, 0, 0, time.UTC)
	if start, end := l.Window(first); start.After(first) || !end.Equal(want) {
		t.Errorf("the window of %v is from %v to %v, want it until %v", first, start, end, want)
	}
	limiter, now := throttle.NewAt(l), throttle.InstantOf(first)
	for i, want := range []throttle.Instant{now, throttle.InstantOf(want)} {
		if granted, err := limiter.Take(now, throttle.Request{N: 1}); granted.At != want || err != nil {
			t.Errorf("permit %d in the first minute = %d, %v, want %d", i+1, granted.At, err, want)
		}
	}
}

// The longest pause blocks no lock, and delays all callers until it ends.
func TestPauseWithoutEndReturns(t *testing.T) {
	for _, l := range []throttle.Limit{
		throttle.TokenBucket(10, time.Second, 5), throttle.LeakyBucket(10, time.Second), throttle.FixedWindow(10, time.Second),
		throttle.SlidingLog(10, time.Second), throttle.SlidingWindow(10, time.Second),
		aligned(throttle.FixedWindow(10, 24*time.Hour), throttle.AlignDay("Europe/Berlin")),
		aligned(throttle.FixedWindow(10, 31*24*time.Hour), throttle.AlignMonth("Asia/Tokyo")),
	} {
		limiter := throttle.NewAt(l)
		limiter.Reconcile(epoch, throttle.Fact{Until: math.MaxInt64})
		year := 365 * 24 * time.Hour
		for _, now := range []throttle.Instant{epoch, epoch.Add(49 * year)} {
			if granted, err := limiter.Take(now, throttle.Request{N: 1}); granted.At <= now || granted.At == throttle.Never || err != nil {
				t.Errorf("%v: Take %v into the pause = %d, %v, want its end", l, now.Sub(epoch), granted.At, err)
			}
		}
		now := epoch.Add(51 * year)
		if granted, err := limiter.Take(now, throttle.Request{N: 1}); granted.At > now || err != nil {
			t.Errorf("%v: Take after the longest pause = %v later, %v, want now", l, granted.At.Sub(now), err)
		}
	}
}

func TestInstantsOfFarTimesAreTheLast(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want throttle.Instant
	}{
		{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), throttle.Never},
		{time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), throttle.Never},
		{time.Date(2262, 1, 1, 0, 0, 0, 5, time.UTC), throttle.Instant(time.Date(2262, 1, 1, 0, 0, 0, 5, time.UTC).UnixNano())},
		{time.Time{}, math.MinInt64 + 1},
		{time.Unix(-5, 5), -5_000_000_000 + 5},
	} {
		if got := throttle.InstantOf(c.at); got != c.want {
			t.Errorf("InstantOf(%v) = %d, want %d", c.at, got, c.want)
		}
	}
}
