package throttle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatalf("time zone %s: %v", name, err)
	}
	return loc
}

// Each case uses up the window of an instant and asks when the next begins.
func TestCalendarWindowsFollowTheZone(t *testing.T) {
	const day, month = 24 * time.Hour, 31 * 24 * time.Hour
	for _, c := range []struct {
		name  string
		zone  string
		per   time.Duration
		at    string // in the zone
		next  string // with its offset
		hours float64
	}{
		{"a day of UTC", "UTC", day, "2026-03-29 10:00", "2026-03-30T00:00:00Z", 24},
		{"a day of 23 hours", "Europe/Berlin", day, "2026-03-29 01:00", "2026-03-30T00:00:00+02:00", 23},
		{"a day of 25 hours", "Europe/Berlin", day, "2026-10-25 01:00", "2026-10-26T00:00:00+01:00", 25},
		{"midnight that does not exist", "America/Asuncion", day, "2023-09-30 12:00", "2023-10-01T01:00:00-03:00", 24},
		{"the day after it", "America/Asuncion", day, "2023-10-01 12:00", "2023-10-02T00:00:00-03:00", 23},
		{"midnight that comes twice", "America/Havana", day, "2025-11-01 12:00", "2025-11-02T00:00:00-04:00", 24},
		{"the day after that", "America/Havana", day, "2025-11-02 12:00", "2025-11-03T00:00:00-05:00", 25},
		{"the day before one that is skipped", "Pacific/Apia", day, "2011-12-29 12:00", "2011-12-31T00:00:00+14:00", 24},
		{"a month of 31 days less an hour", "Europe/Berlin", month, "2026-03-15 12:00", "2026-04-01T00:00:00+02:00", 31*24 - 1},
		{"February of a leap year", "UTC", month, "2028-02-29 23:59", "2028-03-01T00:00:00Z", 29 * 24},
		{"December", "Asia/Tokyo", month, "2026-12-31 23:59", "2027-01-01T00:00:00+09:00", 31 * 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, err := time.ParseInLocation("2006-01-02 15:04", c.at, zone(t, c.zone))
			if err != nil {
				t.Fatal(err)
			}
			next, err := time.Parse(time.RFC3339, c.next)
			if err != nil {
				t.Fatal(err)
			}
			l := throttle.FixedWindow(2, c.per).Aligned(throttle.AlignDay(c.zone))
			if c.per == month {
				l.Align = throttle.AlignMonth(c.zone)
			}
			end := throttle.InstantOf(next)
			begin := end.Add(-time.Duration(c.hours * float64(time.Hour)))
			limiter := throttle.NewAt(l)
			for i, now := range []throttle.Instant{throttle.InstantOf(at), end - 1, end - 1} {
				want := now
				if i == 2 {
					want = end
				}
				if got, _ := limiter.Take(now, throttle.Request{N: 1}); got.At != want {
					t.Fatalf("permit %d at %d = %d, want %d", i+1, now, got.At, want)
				}
			}
			// The window before ends where this one begins.
			before := throttle.NewAt(l)
			for range 2 {
				_, _ = before.Take(begin-1, throttle.Request{N: 1})
			}
			if got, _ := before.Take(begin-1, throttle.Request{N: 1}); got.At != begin {
				t.Fatalf("the window begins at %d, want %d, %v", got.At, begin, begin.Sub(got.At))
			}
		})
	}
}

// The owner's instants follow the monotonic clock; the wall clock is stepped beside it.
func TestAlignedWindowsFollowAWallClockThatIsStepped(t *testing.T) {
	var now, wall throttle.Instant
	limiter := throttle.NewWall(func(throttle.Instant) throttle.Instant { return wall }, throttle.FixedWindow(1, time.Minute))
	pass := func(d time.Duration) { now, wall = now.Add(d), wall.Add(d) }
	take := func(want time.Duration) {
		t.Helper()
		got, _ := limiter.Take(now, throttle.Request{N: 1, Since: now})
		if d := max(got.At.Sub(now), 0); d != want {
			t.Fatalf("Take at wall %v waits %v, want %v", time.Duration(wall)%time.Hour, d, want)
		}
	}
	const minute = throttle.Instant(time.Minute)
	now = epoch
	wall = epoch/minute*minute + 10*throttle.Instant(time.Second)
	take(0)
	take(50 * time.Second)
	wall = wall.Add(20 * time.Second) // a step forward counts from the next window on
	pass(50 * time.Second)            // 20 s into the next minute
	take(0)
	take(40 * time.Second)
	pass(40 * time.Second)
	take(0)
	wall = wall.Add(-15 * time.Second) // a step back within the window: it lasts longer
	pass(time.Minute)
	take(15 * time.Second)
	pass(15 * time.Second)
	take(0)
	wall = wall.Add(-time.Hour) // far back: windows continue, and never wait for the hour
	pass(time.Minute)
	take(0)
	take(time.Minute)
	wall = wall.Add(3 * time.Millisecond) // within the duration of a call, no step
	pass(time.Minute)
	take(0)
	take(time.Minute)
}

// In a bubble the wall clock is the bubble's, and instants are exact.
func TestAlignedWindowsAreExactInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("", throttle.FixedWindow(2, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(17 * time.Second)
		base := time.Now()
		now := func() throttle.Instant { return throttle.InstantOf(base).Add(time.Since(base)) }
		for range 3 {
			for range 2 {
				if granted, _ := limiter.Take(now(), throttle.Request{N: 1}); granted.At > now() {
					t.Fatalf("Take = %v later, want now", granted.At.Sub(now()))
				}
			}
			granted, _ := limiter.Take(now(), throttle.Request{N: 1})
			if next := throttle.InstantOf(time.Now().Truncate(time.Minute).Add(time.Minute)); granted.At != next {
				t.Fatalf("Take = %d, want the next minute, %d", granted.At, next)
			}
			time.Sleep(granted.At.Sub(now()))
		}
	})
}
