package script

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestLaneOf(t *testing.T) {
	long := make([]byte, 300)
	for i := range long {
		long[i] = 'x'
	}
	for _, tt := range []struct {
		key, lane string
		ok        bool
	}{
		{KeyOf(Layout, "billing/eu", "api.example.com GET /users/{id}"), "api.example.com GET /users/{id}", true},
		{KeyOf(Layout, "billing/eu", ""), "", true},
		{KeyOf(Layout, "billing/eu", "50%20x"), "50%20x", true},
		{KeyOf(Layout, "billing/eu", string(long)), Escape(string(long)), true},
		{KeyOf("2", "billing/eu", "a"), "", false},
		{KeyOf(Layout, "billing", "a"), "", false},
		{FlightsKey(KeyOf(Layout, "billing/eu", "a")), "", false},
		{logKey(KeyOf(Layout, "billing/eu", "a"), "requests-0"), "", false},
		{"weir:1:{billing%2feu/%zz}", "%zz", true},
	} {
		if lane, ok := LaneOf("billing/eu", tt.key); lane != tt.lane || ok != tt.ok {
			t.Errorf("LaneOf(%q) = %q, %v, want %q, %v", tt.key, lane, ok, tt.lane, tt.ok)
		}
	}
	if got, want := Pattern("a*[b]?"), `weir:1:{a\*\[b\]\?/*}`; got != want {
		t.Errorf("Pattern = %s, want %s", got, want)
	}
}

func TestReadState(t *testing.T) {
	now := time.UnixMicro(1767225601000000)
	fields := map[string]string{
		"lane":            "1767225600000000 2 1767225602500000 353445120 3 2 1767225605500002 0 0 1767225602000000",
		"at":              "1767225601000000",
		"learned":         "0 48 20000 1 0 0 0 0 0 60000000 0 0 0 0 0 0",
		"~":               "b 1 1 1 1 1 -;1767225602000000 1767225602400000 0",
		"=requests-0":     "b 10 1000000 100000 1 5 -;1767225602000000 1767225602400000 0",
		"=requests-day-0": "f 1000 86400000000 86400000 1 1 day@UTC;1767225600000000 1767225600000000 1767312000000000 4 0 0 0",
	}
	s, err := ReadState(fields, now)
	bucket := throttle.TokenBucket(10, time.Second, 5).Named("requests-0")
	day := throttle.FixedWindow(1000, 24*time.Hour).Aligned(throttle.AlignDay("UTC")).Named("requests-day-0")
	if err != nil || len(s.Limits) != 2 || s.Limits[0] != bucket || s.Limits[1] != day || s.Paused != 1500*time.Millisecond || s.Replicas != 3 || s.Interval != 20*time.Millisecond {
		t.Errorf("ReadState = %+v, %v, want %v and %v, paused for 1.5 s, three replicas, 50/s", s, err, bucket, day)
	}
	if s, err := ReadState(fields, now.Add(5*time.Second)); err != nil || s.Replicas != 3 || s.Paused != 0 {
		t.Errorf("ReadState after 5 s = %+v, %v, want three replicas still, and no pause", s, err)
	}
	if s, err := ReadState(fields, now.Add(10*time.Second)); err != nil || s.Replicas != 0 {
		t.Errorf("ReadState after 10 s = %+v, %v, want no replicas", s, err)
	}
	for field, text := range map[string]string{"lane": "1 2", "learned": "x", "=requests-0": "q 10 1000000 100000 1 5 -;", "=x": ""} {
		bad := map[string]string{"lane": fields["lane"], field: text}
		if s, err := ReadState(bad, now); err == nil {
			t.Errorf("ReadState with %s %q = %+v, want an error", field, text, s)
		}
	}
}

// Encoded limits are read back equal.
func TestReadClaimReadsWhatIsEncoded(t *testing.T) {
	for _, l := range []throttle.Limit{
		throttle.TokenBucket(100, time.Second, 20), throttle.LeakyBucket(5, time.Minute), throttle.SlidingLog(3, time.Second), throttle.SlidingWindow(7, time.Hour),
		throttle.FixedWindow(10, time.Minute), throttle.FixedWindow(10, time.Hour).Aligned(throttle.AlignFirstUse),
	} {
		l = l.Named("requests")
		e, err := EncodeLimits([]throttle.Limit{l})
		if err != nil {
			t.Fatal(err)
		}
		got, ok := readClaim(e.Limits[0].claim + ";1 2 3")
		if got = got.Named("requests"); !ok || got.String() != l.String() {
			t.Errorf("readClaim(%q) = %v, %v, want %v", e.Limits[0].claim, got, ok, l)
		}
	}
}

func TestReadFlights(t *testing.T) {
	now := time.UnixMicro(1767225601000000)
	leased, most := ReadFlights(map[string]string{
		"a": "1 5 1767225602000000 3 5 3 0 0 60000000",
		"b": "1 4 1767225602000000 1 5 1 0 0 60000000",
		"c": "1 2 1767225600000000 9 5 1 0 0 60000000", // its lease has ended
		"d": "garbage",
	}, now)
	if leased != 4 || most != 4 {
		t.Errorf("ReadFlights = %d of %d, want 4 of 4", leased, most)
	}
	const lease = "1 1073741824 1767225602000000 3 5 3 0 0 60000000"
	for learned, want := range map[string]int{"7 1767225600000000": 7, "0 1767225600000000": 0, "garbage": 0} {
		if leased, most := ReadFlights(map[string]string{"a": lease, " learned": learned}, now); leased != 3 || most != want {
			t.Errorf("ReadFlights with %q learned = %d of %d, want 3 of %d", learned, leased, most, want)
		}
	}
}
