package headers_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

// A vendor's JSON numbers for a wait. The grammar is that of Retry-After: neither signs nor
// exponents.
func TestNumbersOfBodies(t *testing.T) {
	digits := strings.Repeat("9", 60_000)
	for _, c := range []struct {
		name, value string
		want        time.Duration
		has         bool
	}{
		{"number", `3`, 3 * time.Second, true},
		{"zero", `0`, 0, true},
		{"fraction", `0.25`, 250 * time.Millisecond, true},
		{"in quotes", `"3"`, 3 * time.Second, true},
		{"in quotes with spaces", `" 3 "`, 3 * time.Second, true},
		{"escaped", `"\u0033\u002e5"`, 3500 * time.Millisecond, true},
		{"duration", `"3.700s"`, 3700 * time.Millisecond, true},
		{"epoch in milliseconds", `1795176060000`, time.Minute, true},
		{"epoch in milliseconds in quotes", `"1795176060000"`, time.Minute, true},
		{"above every time", `123456789012345678901234567890`, month, true},
		{"60,000 digits", digits, month, true},
		{"60,000 digits in quotes", `"` + digits + `"`, month, true},
		{"60,000 digits of a fraction", `1.` + digits, 2 * time.Second, true},
		{"a key twice, the longer counts", `7,"wait":3`, 7 * time.Second, true},
		{"a key twice, the first is none", `1e400,"wait":3`, 3 * time.Second, true},
		{"the key inside itself", `{"wait":3}`, 0, false},
		{"exponent", `1e400`, 0, false},
		{"small exponent", `3E0`, 0, false},
		{"exponent behind many digits", digits + `e-59999`, 0, false},
		{"exponent in quotes", `"3e1"`, 0, false},
		{"minus", `-3`, 0, false},
		{"minus zero", `-0`, 0, false},
		{"null", `null`, 0, false},
		{"true", `true`, 0, false},
		{"NaN in quotes", `"NaN"`, 0, false},
		{"infinity in quotes", `"Infinity"`, 0, false},
		{"hexadecimal in quotes", `"0x3"`, 0, false},
		{"underscore in quotes", `"3_000"`, 0, false},
		{"digits that are not ASCII", `"٣"`, 0, false},
		{"empty", `""`, 0, false},
		{"list", `[3]`, 0, false},
		// Invalid JSON is not read.
		{"NaN", `NaN`, 0, false},
		{"leading zero", `03`, 0, false},
		{"no digit behind the point", `3.`, 0, false},
		{"plus", `+3`, 0, false},
		{"hexadecimal", `0x3`, 0, false},
		{"no end", `3`[:0], 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := `{"wait":` + c.value + `}`
			resp, body := bodied(429, text)
			if got := speaker.Parse(resp, received); got.RetryAfter != c.want || got.HasRetryAfter != c.has {
				t.Errorf("RetryAfter = %v, %v, want %v, %v", got.RetryAfter, got.HasRetryAfter, c.want, c.has)
			}
			checkBody(t, resp, body, text)
		})
	}
}

// A body cut off at the bound is read up to there, without an incomplete number.
func TestBodyCutOffInAValue(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       time.Duration
	}{
		{"in a number", `{"x":"` + strings.Repeat("x", 64<<10-17) + `","wait":3` + strings.Repeat("0", 99) + `}`, 0},
		{"in a key", `{"wait":3,"` + strings.Repeat("x", 64<<10) + `":4}`, 3 * time.Second},
		{"behind nonsense", `{"wait":3,]}}}` + strings.Repeat(" ", 64<<10), 3 * time.Second},
		{"value for a key", `{3:4,"wait":3,` + strings.Repeat(" ", 64<<10), 0},
		{"nothing around", `"wait",3,` + strings.Repeat(" ", 64<<10), 0},
		{"no colons", `{"wait" 3 "wait" 4` + strings.Repeat(" ", 64<<10), 4 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, _ := bodied(429, c.text)
			if got := speaker.Parse(resp, received); got.RetryAfter != c.want {
				t.Errorf("RetryAfter = %v, want %v", got.RetryAfter, c.want)
			}
		})
	}
}

// A long value costs no memory in proportion to its length, beyond the body that
// is kept for the caller.
func TestLongValuesOfBodiesCostNothing(t *testing.T) {
	const length = 60_000
	cost := func(text string) uint64 {
		text += strings.Repeat(" ", length+100-len(text))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 20 {
			resp, _ := bodied(429, text)
			speaker.Parse(resp, received)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / 20
	}
	short := cost(`{"wait":3}`)
	for name, text := range map[string]string{
		"number":     `{"wait":` + strings.Repeat("9", length) + `}`,
		"string":     `{"wait":"` + strings.Repeat("9", length) + `"}`,
		"escapes":    `{"wait":"` + strings.Repeat(`\u0039`, length/6) + `"}`,
		"key":        `{"` + strings.Repeat("wait", length/4) + `":3}`,
		"depth":      strings.Repeat("[", length/2) + strings.Repeat("]", length/2),
		"duplicates": `{` + strings.Repeat(`"x":1,`, length/6-1) + `"x":1}`,
	} {
		if long := cost(text); long > short+32<<10 {
			t.Errorf("a body with a long %s costs %d bytes, one with a short value %d", name, long, short)
		}
	}
}

// A key may contain the dot that separates keys.
func TestHintsOfKeysWithDots(t *testing.T) {
	d := &headers.Dialect{Body: []headers.Field{{Name: "odata.error.code", Fact: headers.FactRefusal, Words: map[string]headers.Scope{"x": 0}}}}
	for text, want := range map[string]bool{
		`{"odata.error":{"code":"x"}}`: true, `{"odata":{"error":{"code":"x"}}}`: true, `{"odata":{"error.code":"x"}}`: true,
		`{"odata.error.code":"x"}`: true, `{"odata.err":{"or.code":"x"}}`: false, `{"odata.error":{"codes":"x"}}`: false, `{"odata.error":"x"}`: false,
	} {
		resp, _ := bodied(500, text)
		if got := d.Parse(resp, received); got.Throttled != want {
			t.Errorf("Parse of %s = %+v, want throttled %v", text, got, want)
		}
	}
}

func TestHintsOfEscapedKeys(t *testing.T) {
	resp, _ := bodied(429, `{"wa\u0069t":3}`)
	if got := speaker.Parse(resp, received); got.RetryAfter != 3*time.Second {
		t.Errorf("RetryAfter = %v, want 3s", got.RetryAfter)
	}
	d := &headers.Dialect{Body: []headers.Field{{Name: "a.*.b", Fact: headers.FactRefusal, Words: map[string]headers.Scope{"x": 0}}}}
	for text, want := range map[string]bool{
		`{"a":[{"b":"x"}]}`: true, `{"a":{"c":{"b":"x"}}}`: true, `{"a":[{"b":["x"]}]}`: false, `{"a":[{"b":1},{"b":"x"}]}`: true,
		`{"a":[[],{},{"b":"x"}]}`: true, `{"a.c.b":"x"}`: false, `{"a":{"c.b":"x"}}`: false, `{"a":{"c.d":{"b":"x"}}}`: true, `[{"a":{"b":"x"}}]`: false, `{"a":{"b":"x"}}`: false, `{"b":0,"a":{"":{"b":"x"}}}`: true,
	} {
		resp, _ := bodied(500, text)
		if got := d.Parse(resp, received); got.Throttled != want {
			t.Errorf("Parse of %s = %+v, want throttled %v", text, got, want)
		}
	}
}
