package strict_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/strict"
	"github.com/weirgo/weir/throttle"
)

// A document has every kind of value that can be read.
type document struct {
	Limits  []throttle.Limit
	Lanes   map[string][]throttle.Limit
	Line    line
	Policy  *line
	Name    string
	On      bool
	Shares  map[string]int
	Bytes   int64
	Ignored func()
}

type line struct {
	MaxWait time.Duration
	Share   float64
	Places  int
}

func TestDecode(t *testing.T) {
	var got document
	err := strict.Decode([]byte(`{
		"limits": ["100/s burst 20", "5000/h"], "lanes": {"a.example": ["1/s"]}, "line": {"maxWait": "1m30s", "share": 0.25, "places": 3},
		"policy": {"places": -1}, "name": "x", "on": true, "shares": {"tokens": 800}, "bytes": 9000000000}`), &got)
	perSecond, perHour, one := throttle.TokenBucket(100, time.Second, 20), throttle.Limit{Permits: 5000, Per: time.Hour}, throttle.Limit{Permits: 1, Per: time.Second}
	want := document{
		Limits: []throttle.Limit{perSecond, perHour}, Lanes: map[string][]throttle.Limit{"a.example": {one}},
		Line: line{MaxWait: 90 * time.Second, Share: 0.25, Places: 3}, Policy: &line{Places: -1},
		Name: "x", On: true, Shares: map[string]int{"tokens": 800}, Bytes: 9_000_000_000,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Decode = %+v, %v, want %+v", got, err, want)
	}
}

// All errors are found at once, each with its path.
func TestDecodeFindsAllThatIsWrong(t *testing.T) {
	err := strict.Decode([]byte(`{
		"limit": ["1/s"], "limits": ["1/s", "1/q", 7], "lanes": {"a": ["1/s"], "a": ["2/s"], "b": "1/s", "c": null}, "line": {"maxWait": 30, "share": "a", "places": 1.5},
		"policy": [], "name": true, "on": "yes", "shares": {"tokens": 1e400}, "bytes": 99999999999999999999, "ignored": 1, "on": true}`), new(document))
	for _, want := range []string{
		`limit: unknown field; there are limits, lanes, line, policy, name, on, shares, bytes`, `limits[1]: throttle: limit "1/q": `, `limits[2]: 7 is not a text in quotes`,
		`lanes: "a" stands twice`, `lanes["b"]: the text "1/s" is not a list`, `lanes["c"]: null is not a list`, `line.maxWait: 30 is not a duration such as 500ms or 1m30s`,
		`line.share: the text "a" is not a number`, `line.places: 1.5 is not a whole number`, `policy: a list is not an object`, `name: true is not a text`,
		`on: the text "yes" is not true or false`, `shares["tokens"]: 1e400 is not a whole number`, `bytes: 99999999999999999999 is not a whole number`,
		`ignored: unknown field`, `"on" stands twice`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Decode = %v, want %q in it", err, want)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 16 {
		t.Errorf("Decode found %d faults, want 16: %v", n, err)
	}
}

func TestDecodeOfWhatIsNoDocument(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "line 1: ",
		"{\n\n\"name\": }":        "line 3: ",
		`{} {}`:                   "more text",
		`[]`:                      "a list is not an object",
		`null`:                    "null is not an object",
		strings.Repeat("[", 1000): "nested deeper than 32",
	} {
		if err := strict.Decode([]byte(text), new(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Decode(%.20q) = %v, want %q in it", text, err, want)
		}
	}
}

func TestEncodeWritesWhatDecodeReads(t *testing.T) {
	want := document{
		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)}, Lanes: map[string][]throttle.Limit{"a b": {throttle.FixedWindow(5, time.Hour)}},
		Line: line{MaxWait: 1500 * time.Millisecond, Share: 0.5}, Policy: &line{Places: 2}, On: true, Shares: map[string]int{"tokens": 0},
	}
	text, err := strict.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := strict.Decode(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Decode(%s) = %+v, %v, want %+v", text, got, err, want)
	}
	if text, err := strict.Encode(document{Limits: []throttle.Limit{{Permits: -1}}}); err == nil {
		t.Errorf("Encode of a bad limit = %s, want an error", text)
	}
}
