package limitertest

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// returning are the rules of returned permits, and of corrected costs.
var returning = []rule{
	{"the last permit handed out shortens the line when it comes back", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.grants(0, 1)
		f.grants(100*ms, 1)
		f.refund(110*ms, 100*ms, 1)
		f.grants(110*ms, 1)
		f.refuses(110*ms, 1, 210*ms)
	}},
	{"a permit given back keeps its instant and does not move the line", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 1))
		for i := range 4 {
			f.grants(time.Duration(i)*ms, 1)
		}
		f.refund(3*ms, 1*ms, 1)
		f.refuses(3*ms, 1, 4*ms)
		if n := f.line(3*ms, 0); n != 1 {
			t.Fatalf("%d of the line took the permit of 1ms, want 1", n)
		}
		f.refuses(3*ms, 1, 4*ms)
	}},
	{"all that left in one instant leaves the bucket as it was when it comes back", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{bucket(10, 2), bucket(10, 3)} {
			f := begin(t, s, l)
			f.grants(0, l.Burst)
			for range l.Burst {
				f.refund(0, 0, 1)
			}
			f.grants(10*ms, l.Burst)
			f.refuses(10*ms, 1, 110*ms)
		}
	}},
	{"who must leave a permit to urgent requests is told exactly when to ask again after one came back", func(t *testing.T, s Suite) {
		reserving := throttle.TokenBucket(1, 10*ms, 2)
		reserving.Reserve = throttle.Part("1")
		f := begin(t, s, reserving)
		for _, at := range []time.Duration{0, 0, 10 * ms} {
			f.take(at, throttle.Request{N: 1, Urgent: true})
		}
		f.refund(10*ms, 10*ms, 1)
		r := throttle.Request{N: 1, Since: after(10 * ms)}
		again := f.take(10*ms, r)
		if at := f.take(again.Add(-s.Tick).Sub(midnight), r); at != again {
			t.Errorf("told to ask again at %v, and a tick before that at %v", again.Sub(midnight), at.Sub(midnight))
		}
		if at := f.take(again.Sub(midnight), r); at > again {
			t.Errorf("told to ask again at %v, and then at %v", again.Sub(midnight), at.Sub(midnight))
		}
	}},
	{"however many came back before, a permit that comes back is kept", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 1), throttle.FixedWindow(1000, time.Minute))
		for round := range 70 {
			now := time.Duration(round) * time.Second
			for i := range 3 {
				f.grants(now+time.Duration(i)*ms, 1)
			}
			f.refund(now+2*ms, now+ms, 1)
		}
		now := 69*time.Second + 2*ms
		if n := f.line(now, 0); n != 1 {
			t.Fatalf("%d of the line took the last permit that came back, want 1", n)
		}
	}},
	{"permits carried forward by giving them back do not add up", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 1))
		var held []throttle.Instant
		for i := range 100 {
			now := time.Duration(i) * ms
			keep := held[:0]
			for _, at := range held {
				if after(now).Sub(at) >= 9*ms {
					f.refund(now, at.Sub(midnight), 1)
				} else {
					keep = append(keep, at)
				}
			}
			held = keep
			for at := f.take(now, throttle.Request{N: 1, Since: midnight}); at <= after(now); at = f.take(now, throttle.Request{N: 1, Since: midnight}) {
				held = append(held, at)
			}
		}
		if len(held) > 12 {
			t.Fatalf("%d permits are held at once, want at most those of the tolerance", len(held))
		}
	}},
	{"a permit older than the tolerance is had again as far as there is room for it", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.TokenBucket(1, time.Hour, 1))
		f.grants(0, 1)
		f.refund(101*ms, 0, 1)
		f.grants(101*ms, 1)
		f.refuses(101*ms, 1, time.Hour+101*ms)

		f = begin(t, s, bucket(100, 1))
		f.grants(0, 1)
		f.grants(10*ms, 1)
		f.grants(20*ms, 1)
		f.refund(21*ms, 0, 1) // the bucket was full without it
		f.refuses(21*ms, 1, 30*ms)

		f = begin(t, s, throttle.TokenBucket(600, time.Minute, 600))
		f.take(0, throttle.Request{N: 300})
		f.take(0, throttle.Request{N: 300})
		f.refund(200*ms, 0, 300)
		if at := f.take(200*ms, throttle.Request{N: 300}); at > after(200*ms) {
			t.Errorf("300 of 600 that came back 200ms later are at hand at %v", at.Sub(midnight))
		}
		f.take(200*ms, throttle.Request{N: 2}) // earned since
		f.refuses(200*ms, 3, 500*ms)

		for _, l := range windowsOf(10, time.Minute) {
			f := begin(t, s, l)
			f.grants(0, 10)
			f.refund(200*ms, 0, 1)
			f.grants(200*ms, 1)
			f.refuses(200*ms, 1, opensAfter(l))
		}
	}},
	{"what was granted before a pause does not come back", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.grants(0, 1)
		f.pause(0, 50*ms)
		f.refund(1*ms, 0, 1)
		f.grants(100*ms, 1)
		f.refuses(100*ms, 1, 200*ms)
	}},
	{"overspend is always charged", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{bucket(10, 10), throttle.LeakyBucket(10, time.Second), throttle.FixedWindow(10, time.Second), throttle.SlidingLog(10, time.Second), throttle.SlidingWindow(10, time.Second)} {
			f := begin(t, s, l)
			f.take(0, throttle.Request{N: 2})
			f.settle(10*time.Second, 0, 2, 12)
			if n := f.line(10*time.Second, 10*time.Second); n != 0 {
				t.Errorf("limit %v: %d left after an overspend of the whole burst", l, n)
			}
		}
	}},
	{"what went over is earned back before a permit that came back is given away", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{bucket(100, 1), throttle.LeakyBucket(100, time.Second)} {
			f := begin(t, s, l)
			f.grants(0, 1)
			f.settle(0, 0, 1, 2)
			f.refund(0, 0, 1)
			f.refuses(0, 1, 10*ms)
			if n := f.line(10*ms, 0); n != 1 {
				t.Errorf("limit %v: %d left once the overspend was earned back, want the one that came back", l, n)
			}
			f.refuses(10*ms, 1, 20*ms)
		}

		f := begin(t, s, bucket(100, 4))
		f.take(0, throttle.Request{N: 3})
		f.take(20*ms, throttle.Request{N: 3})
		f.refund(20*ms, 20*ms, 3)
		f.settle(20*ms, 20*ms, 0, 3)
		f.refuses(20*ms, 3, 80*ms) // when the overspend is earned back, the returned permits are too old
	}},
	{"windows pay what went over, one after the other", func(t *testing.T, s Suite) {
		first := throttle.FixedWindow(10, time.Second).Aligned(throttle.AlignFirstUse)
		for _, l := range []throttle.Limit{throttle.FixedWindow(10, time.Second), first} {
			f := begin(t, s, l)
			f.grants(0, 10)
			f.settle(0, 0, 10, 25)
			f.refuses(0, 1, 2*time.Second)
			f.refuses(0, 10, 3*time.Second)
			f.refuses(1500*ms, 1, 2*time.Second)
			f.grants(2*time.Second, 5)
			f.refuses(2*time.Second, 1, 3*time.Second)
			f.grants(3*time.Second, 10)

			f = begin(t, s, l)
			f.grants(0, 10)
			f.settle(0, 0, 10, 25)
			f.grants(time.Minute, 10)
		}
	}},
	{"a window of first use begins with its first permit, also where it pays", func(t *testing.T, s Suite) {
		first := throttle.FixedWindow(10, time.Second).Aligned(throttle.AlignFirstUse)
		f := begin(t, s, first)
		f.grants(0, 10)
		f.settle(0, 0, 10, 13)
		f.refuses(1800*ms, 8, 2*time.Second)
		f.grants(1900*ms, 1)
		f.refuses(1900*ms, 7, 2900*ms)
		f.grants(2*time.Second, 6)
		f.refuses(2*time.Second, 1, 2900*ms)
		f.grants(2900*ms, 10)
	}},
	{"a permit that never left begins no window of first use", func(t *testing.T, s Suite) {
		first := throttle.FixedWindow(2, 10*time.Second).Aligned(throttle.AlignFirstUse)
		f := begin(t, s, first)
		f.grants(0, 1)
		f.refund(0, 0, 1)
		f.grants(9*time.Second, 2)
		f.refuses(10*time.Second, 1, 19*time.Second)

		f = begin(t, s, first)
		f.grants(0, 1)
		f.grants(50*ms, 1)
		f.refund(60*ms, 0, 1)
		f.grants(9*time.Second, 1)
		if n := f.line(10049*ms, 10049*ms); n != 0 {
			t.Fatalf("%d left in the window that one at 50ms began", n)
		}
		f.grants(10100*ms, 1)
	}},
	{"permits that come back put off a window of first use by no more than the tolerance", func(t *testing.T, s Suite) {
		first := throttle.FixedWindow(100, time.Second).Aligned(throttle.AlignFirstUse)
		f := begin(t, s, first)
		f.grants(0, 100)
		for range 91 {
			f.refund(ms, 0, 1)
		}
		f.grants(10*ms, 91)
		f.refuses(10*ms, 1, time.Second)

		f = begin(t, s, first)
		f.grants(0, 1)
		f.grants(5*ms, 99) // these begin it
		f.refund(10*ms, 0, 1)
		for now := 20 * ms; now < 960*ms; now += 20 * ms {
			f.grants(now, 1)
			f.refund(now+20*ms, now, 1)
		}
		f.grants(990*ms, 1)
		f.refuses(1049*ms, 1, 1100*ms)
	}},
	{"windows of a calendar pay what went over, one after the other", func(t *testing.T, s Suite) {
		const day = 24 * time.Hour
		month := throttle.FixedWindow(2, 31*day).Aligned(throttle.AlignMonth("UTC")) // of January 2026
		f := begin(t, s, month)
		f.settle(0, 0, 0, 4)
		f.refuses(0, 1, 59*day) // February pays
		f.refuses(31*day, 1, 59*day)
		f.grants(59*day, 2)
		f.refuses(59*day, 1, 90*day)

		f = begin(t, s, month)
		f.settle(0, 0, 0, 5)
		f.refuses(0, 2, 90*day)
		f.grants(59*day, 1)
		f.refuses(59*day, 1, 90*day)
	}},
	{"settling makes sense of no negative number", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{bucket(10, 10), throttle.FixedWindow(10, time.Second), throttle.SlidingLog(10, time.Second), throttle.SlidingWindow(10, time.Second)} {
			f := begin(t, s, l)
			f.settle(0, 0, 0, 0)
			f.grants(0, 10)
			f.settle(0, 0, 0, -5)
			f.settle(0, 0, -5, -8)
			if n := f.line(0, 0); n != 0 {
				t.Errorf("limit %v: %d left of a cost below nothing", l, n)
			}
			f.settle(0, 0, -5, 0)
			f.settle(0, 0, 1, -5)
			if n := f.line(0, 0); n != 1 {
				t.Errorf("limit %v: %d left, want the one that cost nothing", l, n)
			}
		}
	}},
	{"a permit of an instant to come is no permit that comes back", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.grants(0, 1)
		f.refund(0, ms, 1)
		f.refuses(0, 1, 100*ms)
	}},
	{"underspend comes back while it is known", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{bucket(10, 100), throttle.FixedWindow(100, time.Minute), throttle.SlidingLog(100, time.Minute), throttle.SlidingWindow(100, time.Minute)} {
			f := begin(t, s, l)
			f.settle(0, 0, 0, 0) // after one Settle charges are remembered
			f.take(0, throttle.Request{N: 80})
			f.take(ms, throttle.Request{N: 20})
			f.settle(2*ms, 0, 80, 50)
			if n := f.line(2*ms, 2*ms); n != 30 {
				t.Errorf("limit %v: %d left after 30 came back", l, n)
			}
		}
	}},
	{"underspend is dropped where the bucket was whole since", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 10))
		f.settle(0, 0, 0, 0)
		f.take(0, throttle.Request{N: 10})
		f.grants(10*time.Second, 10)
		f.settle(10*time.Second, 0, 10, 0)
		f.refuses(10*time.Second, 1, 10100*ms)
	}},
	{"underspend of two does not come back beyond where the bucket was whole", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 20))
		f.settle(0, 0, 0, 0)
		f.take(0, throttle.Request{N: 5})
		f.take(0, throttle.Request{N: 5})
		f.take(500*ms, throttle.Request{N: 10})
		f.settle(500*ms, 0, 5, 0)
		f.settle(500*ms, 0, 5, 0)
		if n := f.line(500*ms, 500*ms); n != 10 {
			t.Fatalf("%d left beside 10 of 20, want 10", n)
		}
	}},
	{"underspend is dropped where the window is over", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Second))
		f.take(0, throttle.Request{N: 10})
		f.grants(time.Second, 10)
		f.settle(time.Second, 0, 10, 0)
		f.refuses(time.Second, 1, 2*time.Second)
	}},
	{"a permit given back does not outlive a pause", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 1))
		for i := range 4 {
			f.grants(time.Duration(i)*ms, 1)
		}
		f.refund(3*ms, 1*ms, 1)
		f.pause(3*ms, 5*ms)
		if n := f.line(5*ms, 0); n != 1 {
			t.Fatalf("%d left at the end of the pause, want 1", n)
		}
	}},
	{"what was granted before a pause does not come back after it", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 1))
		f.grants(0, 1)
		f.pause(0, 5*ms)
		f.refund(5*ms, 0, 1)
		if n := f.line(5*ms, 0); n != 1 {
			t.Fatalf("%d left at the end of the pause, want 1", n)
		}
	}},
	{"what other limits granted does not come back", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.grants(0, 1)
		calls := throttle.FixedWindow(1, time.Hour).Of("calls")
		f.tune(0, calls)
		f.grants(0, 1)
		f.refund(0, 0, 1)
		f.refuses(0, 1, time.Hour)
	}},
	{"underspend of the window before lightens its weight", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingWindow(100, time.Minute))
		f.take(59*time.Second, throttle.Request{N: 80})
		f.settle(61*time.Second, 59*time.Second, 80, 50)
		if n := f.line(90*time.Second, 90*time.Second); n != 75 {
			t.Fatalf("%d left beside 50 at half their weight, want 75", n)
		}
	}},
}
