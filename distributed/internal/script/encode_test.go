package script

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestLimitsAreEncodedExactly(t *testing.T) {
	aligned := throttle.FixedWindow(5, time.Minute)
	first := throttle.FixedWindow(5, time.Minute).Aligned(throttle.AlignFirstUse)
	month := throttle.FixedWindow(5, 31*24*time.Hour)
	month.Align = throttle.AlignMonth("Europe/Berlin")
	for _, c := range []struct {
		limit throttle.Limit
		claim string
	}{
		{throttle.TokenBucket(100, time.Second, 20), "b 100 1000000 10000 1 20 -"},
		{throttle.GCRA(7_777, time.Second, 1), "b 7777 1000000 1000000 7777 1 -"},
		{throttle.TokenBucket(3, time.Nanosecond, 1), "b 3 1 1 3000 1 -"},
		{throttle.LeakyBucket(150_000, time.Second), "l 150000 1000000 20 3 1 -"},
		{aligned, "f 5 60000000 12000000 1 1 -"},
		{first, "f 5 60000000 12000000 1 1 first"},
		{month, "f 5 2678400000000 535680000000 1 1 month@Europe/Berlin"},
		{throttle.SlidingLog(3, time.Second), "g 3 1000000 1000000 3 1 -"},
		{throttle.SlidingWindow(10, time.Second), "s 10 1000000 100000 1 1 -"},
	} {
		if got := mustEncode(t, c.limit).Limits[0].claim; got != c.claim {
			t.Errorf("limit %v: %q, want %q", c.limit, got, c.claim)
		}
	}
}

func TestLimitsThatCannotBeCountedAreErrors(t *testing.T) {
	type refused struct {
		limit throttle.Limit
		text  string
	}
	cases := []refused{
		{throttle.FixedWindow(1, time.Nanosecond), "per 1ns"},
		{throttle.SlidingLog(1, time.Second+1), "per 1.000000001s"},
		{throttle.FixedWindow(1, 3*365*24*time.Hour), "per 26280h0m0s"},
		{throttle.TokenBucket(1_000_000_007, 2_000_000_000_000_000_003, 1), "1000000007 permits"},
		{throttle.TokenBucket(1, 365*24*time.Hour, 1000), "burst 1000"},
	}
	if most := math.MaxInt; most > math.MaxInt32 {
		cases = append(cases,
			refused{throttle.SlidingWindow(most, time.Second), "permits 9223372036854775807"},
			refused{throttle.TokenBucket(1, time.Hour, most), "burst 9223372036854775807"})
	}
	for _, c := range cases {
		resolved, err := throttle.Resolve(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = EncodeLimits(resolved); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("limit %v: error %v, want one of %q", c.limit, err, c.text)
		}
	}
}

func TestCostsThatCannotBeCountedAreErrors(t *testing.T) {
	e := mustEncode(t, throttle.LeakyBucket(1, 24*time.Hour))
	for _, c := range []struct {
		n  int
		ok bool
	}{{0, true}, {1_628, true}, {1_629, false}, {-1, false}, {1<<31 - 1, false}} {
		r := throttle.Request{N: c.n}
		if err := e.Check(e.Costs(&r, nil)); (err == nil) != c.ok {
			t.Errorf("check(%d) = %v", c.n, err)
		}
	}
}

func TestRequestIsEncodedInOrder(t *testing.T) {
	e := mustEncode(t, throttle.TokenBucket(10, time.Second, 3), throttle.SlidingLog(5, time.Minute))
	r := Request{
		now: 1, Tolerance: 2 * time.Microsecond, Latest: 3 * time.Microsecond, Horizon: 4 * time.Microsecond,
		Most: 5, Seen: Echo{6, 7, 8}, Period: 9, Alive: 27, State: true, Channel: "news", Lane: "lane", Limits: e,
		Reports: []Report{
			{Kind: ReportPause, Span: 10},
			{Kind: ReportRefund, At: 12, Epoch: 13, Costs: []int64{14, 15}},
			{Kind: ReportSettle, At: 16, Costs: []int64{17, 18}, Actual: []int64{19, 20}},
			{Kind: ReportLocal, Costs: []int64{21, 22}},
			{Kind: ReportTune, Heirs: []string{"old", ""}},
		},
		Groups: []Group{{23, 24 * time.Microsecond, []int64{25, 26}}},
	}
	want := []any{
		int64(1), int64(2), int64(3), int64(4), 5, int64(6), int64(7), int64(8), int64(9), "1", "news", "lane",
		2, "=requests-0", "b 10 1000000 100000 1 3 -", "", 0, "=requests-1", "g 5 60000000 12000000 1 1 -", "", 0,
		5, "p", int64(10), "r", int64(12), int64(13), int64(14), int64(15),
		"x", int64(16), int64(17), int64(18), int64(19), int64(20), "l", int64(21), int64(22), "t", "old", "",
		1, 23, int64(24), int64(25), int64(26), 27,
	}
	if got := r.Args(nil); !reflect.DeepEqual(got, want) {
		t.Errorf("args() =\n%#v, want\n%#v", got, want)
	}
	keys := []string{"{a}", "{a}:log:requests-1", "{a}:log:old"}
	if got := r.Keys("{a}"); !reflect.DeepEqual(got, keys) {
		t.Errorf("keys() = %q, want %q", got, keys)
	}
	if r.now = 0; r.Args(nil)[0] != "" {
		t.Errorf("args() = %v, want no instant", r.Args(nil)[:1])
	}
}

// Every caller uses the clock of Redis: the argument for another one is only for tests.
func TestNothingButTestsGivesTheScriptTheTime(t *testing.T) {
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("the sources are %v, %v", names, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			for _, written := range writtenTo(n) {
				if written == "now" {
					t.Errorf("%v: the field %s of a request or report is filled", files.Position(n.Pos()), written)
				}
			}
			return true
		})
	}
}

// writtenTo returns the fields that a request or report is made with, and those that are assigned.
func writtenTo(n ast.Node) (fields []string) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		name, _ := n.Type.(*ast.Ident)
		for _, element := range n.Elts {
			pair, keyed := element.(*ast.KeyValueExpr)
			if name == nil || name.Name != "request" && name.Name != "report" {
				continue
			}
			if !keyed {
				return []string{"now"} // by their places
			}
			fields = append(fields, pair.Key.(*ast.Ident).Name)
		}
	case *ast.AssignStmt:
		for _, target := range n.Lhs {
			if field, ok := target.(*ast.SelectorExpr); ok {
				fields = append(fields, field.Sel.Name)
			}
		}
	case *ast.UnaryExpr:
		if field, ok := n.X.(*ast.SelectorExpr); ok && n.Op == token.AND {
			fields = append(fields, field.Sel.Name)
		}
	}
	return fields
}

// A lane's keys are on one slot of a Cluster, whatever its names.
func TestKeysOfALaneHaveOneHashTag(t *testing.T) {
	for _, name := range []string{"plain", "{", "}", "{}", "}{", "{a}", "a}b", "{{a}}", "", "%7b"} {
		log := throttle.SlidingLog(1, time.Second).Named("log of " + name)
		other := throttle.SlidingLog(1, time.Second)
		lane := laneKey(name, name)
		r := Request{Limits: mustEncode(t, log, other), Reports: []Report{{Kind: ReportTune, Heirs: []string{"{" + name, "}{x}"}}}}
		keys := r.Keys(lane)
		if len(keys) != 5 {
			t.Errorf("keys of %q are %q, want five", name, keys)
		}
		for _, key := range keys {
			if tag := hashTag(key); tag == "" || tag != hashTag(lane) {
				t.Errorf("key %q has the hash tag %q, want %q", key, tag, hashTag(lane))
			}
		}
	}
}

// hashTag returns the part of a key that a Cluster hashes; "" if that is the whole key.
func hashTag(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, found := strings.Cut(rest, "}")
	if !found {
		return ""
	}
	return tag
}

func TestBoundsOfACalendarAreThoseOfItsWindows(t *testing.T) {
	day := throttle.FixedWindow(5, 24*time.Hour)
	day.Align = throttle.AlignDay("Europe/Berlin")
	c := &mustEncode(t, day).Limits[0]
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	// The clocks go forward on the 29th: its day has 23 hours.
	at := time.Date(2026, 3, 28, 15, 0, 0, 0, zone)
	var want []byte
	for d := 27; d < 33; d++ {
		want = append(want, ',')
		want = time.Date(2026, 3, d, 0, 0, 0, 0, zone).AppendFormat(want, "20060102")
	}
	for range 2 { // computed, then remembered
		var got []byte
		for _, bound := range strings.Split(c.calendar.bounds(at.UnixMicro()), ",") {
			var micros int64
			for _, digit := range bound {
				micros = 10*micros + int64(digit-'0')
			}
			when := time.UnixMicro(micros).In(zone)
			if h, m, s := when.Clock(); h+m+s != 0 {
				t.Errorf("the bound %v is no midnight", when)
			}
			got = when.AppendFormat(append(got, ','), "20060102")
		}
		if string(got) != string(want) {
			t.Errorf("bounds around %v are %s, want %s", at, got, want)
		}
		at = at.Add(8 * time.Hour)
	}
}
