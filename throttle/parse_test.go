package throttle_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func aligned(l throttle.Limit, a throttle.Align) throttle.Limit {
	l.Align = a
	return l
}

func TestParseLimit(t *testing.T) {
	full := throttle.TokenBucket(100_000, time.Minute, 500)
	full.Unit, full.Name = "input tokens", "per minute"
	tokens := throttle.TokenBucket(90_000, time.Minute, 0).Of("tokens")
	for _, c := range []struct {
		text string
		want throttle.Limit
		same string // what String writes, where it differs from text
	}{
		{"100/1s burst 20", throttle.TokenBucket(100, time.Second, 20), "100/s burst 20"},
		{"100/s", throttle.TokenBucket(100, time.Second, 0), "100/s"},
		{"leaky 10/1s", throttle.LeakyBucket(10, time.Second), "leaky 10/s"},
		{"5000/h fixed", throttle.FixedWindow(5000, time.Hour), "fixed 5000/h"},
		{"fixed 20000/d", throttle.FixedWindow(20_000, 24*time.Hour), "fixed 20000/d"},
		{"bucket 1/ms", throttle.TokenBucket(1, time.Millisecond, 0), "1/1ms"},
		{"log 3/90s", throttle.SlidingLog(3, 90*time.Second), "log 3/1m30s"},
		{"sliding 500/1m", throttle.SlidingWindow(500, time.Minute), "sliding 500/m"},
		{"gcra 7/1h10m burst 3", throttle.GCRA(7, 70*time.Minute, 3), ""},
		{"  100/s \t burst  2 ", throttle.TokenBucket(100, time.Second, 2), "100/s burst 2"},
		{"fixed 1/24h align day@Europe/Berlin", aligned(throttle.FixedWindow(1, 24*time.Hour), throttle.AlignDay("Europe/Berlin")), "fixed 1/d align day@Europe/Berlin"},
		{"fixed 1/744h align month@UTC", aligned(throttle.FixedWindow(1, 744*time.Hour), throttle.AlignMonth("")), ""},
		{"fixed 9/1m align first", aligned(throttle.FixedWindow(9, time.Minute), throttle.AlignFirstUse), "fixed 9/m align first"},
		{"100 per second", throttle.TokenBucket(100, time.Second, 0), "100/s"},
		{"60/min", throttle.TokenBucket(60, time.Minute, 0), "60/m"},
		{"5000/hour", throttle.TokenBucket(5000, time.Hour, 0), "5000/h"},
		{"10 rps", throttle.TokenBucket(10, time.Second, 0), "10/s"},
		{"50_000/d", throttle.TokenBucket(50_000, 24*time.Hour, 0), "50000/d"},
		{"500 rpm burst 1_000", throttle.TokenBucket(500, time.Minute, 1000), "500/m burst 1000"},
		{"fixed 1_000_000 per day of tokens", func() throttle.Limit {
			l := throttle.FixedWindow(1_000_000, 24*time.Hour).Of("tokens")
			return l
		}(), "fixed 1000000/d of tokens"},
		{"7 rph log", throttle.SlidingLog(7, time.Hour), "log 7/h"},
		{"100 / s", throttle.TokenBucket(100, time.Second, 0), "100/s"},
		{"100/ s burst 5", throttle.TokenBucket(100, time.Second, 5), "100/s burst 5"},
		{"100req/s", throttle.TokenBucket(100, time.Second, 0), "100/s"},
		{"log 100 requests/m", throttle.SlidingLog(100, time.Minute), "log 100/m"},
		{"100 requests per second", throttle.TokenBucket(100, time.Second, 0), "100/s"},
		{"90000 tokens/m", tokens, "90000/m of tokens"},
		{"90k tokens / m", tokens, "90000/m of tokens"},
		{"10k/d", throttle.TokenBucket(10_000, 24*time.Hour, 0), "10000/d"},
		{"1_5kreq/h burst 2k", throttle.TokenBucket(15_000, time.Hour, 2000), "15000/h burst 2000"},
		{"5000/h keep 20%", throttle.TokenBucket(5000, time.Hour, 0).Keeping("20%"), ""},
		{"5000/h keep 1_000 burst 50 reserve 2.5%", throttle.TokenBucket(5000, time.Hour, 50).Keeping("1_000").Reserving("2.5%"), "5000/h burst 50 keep 1_000 reserve 2.5%"},
		{"20000/d fixed reserve 10% of calls", throttle.FixedWindow(20_000, 24*time.Hour).Of("calls").Reserving("10%"), "fixed 20000/d reserve 10% of calls"},
		{"7 rpd", throttle.TokenBucket(7, 24*time.Hour, 0), "7/d"},
		{"300 per 10seconds", throttle.TokenBucket(300, 10*time.Second, 0), "300/10s"},
		{"2/2days", throttle.TokenBucket(2, 48*time.Hour, 0), "2/48h"},
		{`100000/1m burst 500 of "input tokens" name "per minute"`, full, `100000/m burst 500 of "input tokens" name "per minute"`},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := throttle.ParseLimit(c.text)
			if err != nil || got != c.want {
				t.Fatalf("ParseLimit(%q) = %+v, %v, want %+v", c.text, got, err, c.want)
			}
			if c.same == "" {
				c.same = c.text
			}
			if s := got.String(); s != c.same {
				t.Fatalf("String() = %q, want %q", s, c.same)
			}
		})
	}
}

func TestParseLimitNamesTheOffendingPart(t *testing.T) {
	for _, c := range []struct{ text, part string }{
		{"", "no rate such as 100/s"},
		{"fixed", "no rate such as 100/s"},
		{"x/s", `permits "x"`},
		{"1.5/s", `permits "1.5"`},
		{"99999999999999999999/s", `permits "99999999999999999999"`},
		{"0/s", "permits 0 are not positive"},
		{"-3/s", "permits -3 are not positive"},
		{"100/fortnight", `per "fortnight"`},
		{"100", `"100" permits in what time?`},
		{"100 burst 5", `"100" permits in what time?`},
		{"100 rpx", `"100" permits in what time?`},
		{"10 requests", `"10" permits in what time?`},
		{"10 tokens s", `"10" permits in what time?`},
		{"10 tokens/m of points", `a second "of": "points"`},
		{"10 of tokens/m", `"10" permits in what time?`},
		{"10kk/s", `permits "10kk"`},
		{"10reqreqs/s", `permits "10reqreqs"`},
		{"k/s", `permits "k"`},
		{"9999999999999999999k/s", `permits "9999999999999999999k"`},
		{"100 per", `per ""`},
		{"100 per fortnight", `per "fortnight"`},
		{"10x/s", `permits "10x"`},
		{"10rps", `permits "10rps"`},
		{"1__0/s", `permits "1__0"`},
		{"_1/s", `permits "_1"`},
		{"1_/s", `permits "1_"`},
		{"10 rps 5/m", `a second rate "5/m"`},
		{"100/", `per ""`},
		{"100/0s", "per 0s is not positive"},
		{"100/-1s", "per -1s is not positive"},
		{"100/999999999999d", `per "999999999999d"`},
		{"100/s 5/m", `a second rate "5/m"`},
		{"fixed 100/s log", `a second algorithm "log"`},
		{"100/s burst", `nothing after "burst"`},
		{"100/s burst many", `burst "many"`},
		{"100/s burst 0", `burst "0"`},
		{"100/s burst 2 burst 3", `a second burst "3"`},
		{"leaky 100/s burst 3", "burst 3: the leaky algorithm saves no permits"},
		{"100/s keep", `nothing after "keep"`},
		{"100/s keep 1 keep 2", `a second "keep": "2"`},
		{"100/s keep 100%", `keep "100%" leaves none of 100 permits`},
		{"100/s keep 101%", `keep "101%" is not between 0% and 100%`},
		{"100/s keep NaN%", `keep "NaN%" is not between`},
		{"100/s keep -5%", `keep "-5%" is not between`},
		{"100/s keep -5", `keep "-5" is not a number of permits`},
		{"100/s keep 0.2", `keep "0.2" is not a number of permits, or a percentage such as 20%`},
		{"100/s keep 100", `keep "100" leaves none of 100 permits`},
		{"100/s reserve 10%", `reserve "10%" leaves none of 1 permits at once to other requests`},
		{"100/s burst 20 keep 90% reserve 2", `reserve "2" leaves none of 2 permits at once`},
		{"fixed 100/s reserve ten", `reserve "ten" is not a number of permits`},
		{"leaky 100/s reserve 1%", `reserve "1%": the leaky algorithm saves no permits`},
		{"100/s of a of b", `a second "of": "b"`},
		{`100/s name "x`, `unclosed quote at "\"x"`},
		{"100/s name \x01", "a character that cannot be printed"},
		{"100/s of \xff", "a character that cannot be printed"},
		{"100/s of " + strings.Repeat("u", 200), "unit of 200 bytes is longer than 128"},
		{"100/s quickly", `unknown word "quickly"`},
		{"log 1/s align first", `align "first": the log algorithm`},
		{"fixed 1/s align noon", `align "noon" is not`},
		{"fixed 1/1h align day@UTC", `align "day@UTC" needs per of 24h, not 1h0m0s`},
		{"fixed 1/24h align month@UTC", `align "month@UTC" needs per of 744h`},
		{"fixed 1/d align day@Atlantis", `align "day@Atlantis": unknown time zone`},
		{"fixed 1/d align day@", `align "day@" names no time zone`},
	} {
		t.Run(c.text, func(t *testing.T) {
			_, err := throttle.ParseLimit(c.text)
			if err == nil || !strings.Contains(err.Error(), c.part) || !strings.HasPrefix(err.Error(), "throttle: limit ") {
				t.Fatalf("ParseLimit(%q) = %v, want the part %q", c.text, err, c.part)
			}
		})
	}
}

func TestLimitStandsInJSON(t *testing.T) {
	type config struct{ Limits []throttle.Limit }
	in := config{[]throttle.Limit{throttle.TokenBucket(100, time.Second, 20), throttle.SlidingLog(9, time.Hour).Keeping("2").Reserving("10%")}}
	text, err := json.Marshal(in)
	if want := `{"Limits":["100/s burst 20","log 9/h keep 2 reserve 10%"]}`; err != nil || string(text) != want {
		t.Fatalf("Marshal = %s, %v, want %s", text, err, want)
	}
	var out config
	if err := json.Unmarshal(text, &out); err != nil || out.Limits[0] != in.Limits[0] || out.Limits[1] != in.Limits[1] {
		t.Fatalf("Unmarshal = %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"Limits":["a hundred a second"]}`), &out); err == nil {
		t.Fatal("a rate in prose was parsed")
	}
	if _, err := json.Marshal(throttle.Limit{}); err == nil {
		t.Fatal("the zero Limit was marshalled")
	}
}

func TestResolveFillsAndChecks(t *testing.T) {
	got, err := throttle.Resolve(throttle.TokenBucket(1, time.Second, 0), throttle.FixedWindow(5, time.Minute))
	if err != nil || got[0].Burst != 1 || got[0].Unit != "requests" || got[0].Name != "requests-0" || got[1].Burst != 0 || got[1].Name != "requests-1" {
		t.Fatalf("Resolve = %+v, %v", got, err)
	}
	twin := throttle.Limit{Permits: 1, Per: 1, Name: "a"}
	if _, err := throttle.Resolve(twin, twin); err == nil || err.Error() != `throttle: two limits are named "a"` {
		t.Fatalf("Resolve of two limits of one name = %v", err)
	}
	if _, err := throttle.Resolve(twin, throttle.Limit{}); err == nil {
		t.Fatal("Resolve of the zero Limit is no error")
	}
	if _, err := (throttle.Local{}).Limiter("key", throttle.Limit{Permits: 1}); err == nil {
		t.Fatal("Local made a limiter of a limit that does not validate")
	}
}

func TestExceedingCostsSayByHowMuch(t *testing.T) {
	for _, c := range []struct {
		limit throttle.Limit
		want  string
	}{
		{throttle.TokenBucket(100, time.Second, 20), "throttle: 30 permits exceed burst of 20 of limit 100/s burst 20: cost exceeds burst"},
		{throttle.FixedWindow(20, time.Hour), "throttle: 30 permits exceed the window's 20 of limit fixed 20/h: cost exceeds burst"},
	} {
		_, err := throttle.NewAt(c.limit).Take(epoch, throttle.Request{N: 30})
		if !errors.Is(err, throttle.ErrExceedsBurst) || err.Error() != c.want {
			t.Errorf("Take of 30 = %v, want %s", err, c.want)
		}
	}
}

func TestRandomLimitsPrintAndParse(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	words := []string{"", "requests", "input tokens", `a"b`, "fixed", "1/s", "ünit", "\u2028", "burst"}
	for range 5_000 {
		l := throttle.Limit{
			Algorithm: throttle.Algorithm(random.IntN(6)),
			Permits:   1 + random.IntN(1<<31-1),
			Per:       time.Duration(1 + random.Int64N(1<<62)),
			Unit:      words[random.IntN(len(words))],
			Name:      words[random.IntN(len(words))],
			Keep:      []throttle.Part{"", "0.5%", "0"}[random.IntN(3)],
		}
		if l.Permits < 3 {
			l.Keep = ""
		}
		got, err := throttle.ParseLimit(l.String())
		if err != nil || got != l {
			t.Fatalf("ParseLimit(%q) = %+v, %v, want %+v", l.String(), got, err, l)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"100/s", "100/s burst 9 keep 3% reserve 2", "fixed 5000/h of tokens align day@UTC name daily", `1/1ns burst 3 of "a b"`, "log 1/d", "100/1.5h", `1/s name "\x00"`, "1/+1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := throttle.ParseLimit(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "throttle: ") {
				t.Fatalf("ParseLimit(%q) = %v", s, err)
			}
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("ParseLimit(%q) = %+v, which does not validate: %v", s, l, err)
		}
		if again, err := throttle.ParseLimit(l.String()); err != nil || again != l {
			t.Fatalf("ParseLimit(%q) prints %q, which parses to %+v, %v, want %+v", s, l.String(), again, err, l)
		}
	})
}

// A limit is called what its user called it, or what its user would write.
func TestLimitIsLabelledAsItsUserWould(t *testing.T) {
	named := throttle.FixedWindow(5, time.Hour).Named("gold")
	tokens := throttle.TokenBucket(10, time.Second, 1).Of("tokens")
	for limit, want := range map[throttle.Limit]string{
		throttle.TokenBucket(100, time.Second, 20): "100/s burst 20",
		throttle.FixedWindow(20, time.Hour):        "fixed 20/h",
		tokens:                                     "10/s of tokens",
		named:                                      "gold",
		{Permits: 1, Per: time.Second, Name: "requests-bucket-x"}: "requests-bucket-x",
	} {
		resolved, err := throttle.Resolve(limit)
		if err != nil {
			t.Fatal(err)
		}
		if got := resolved[0].Label(); got != want {
			t.Errorf("label of %v = %q, want %q", resolved[0], got, want)
		}
		if got := limit.Label(); got != want {
			t.Errorf("label of %v = %q, want %q", limit, got, want)
		}
	}
}
