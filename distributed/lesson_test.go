package distributed

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/throttle"
)

// What a reply tells of a lesson is read as it was written, and what makes no sense is an
// error.
func TestReplyThatTeaches(t *testing.T) {
	const field = "10 20 125 2 0 0 0 0 15 600000000 1 3 0 0 0 0"
	seen, ok := readLearnedField(field)
	want := learnedField{text: field, from: 10, to: 20, pacing: pacing{unit: 125, den: 2, keep: 600_000_000, unbound: 1, reserve: 3}}
	if !ok || seen != want {
		t.Fatalf("%q is read as %+v, %v, want %+v", field, seen, ok, want)
	}
	lane, _ := readLaneField("1 2 0 3 4 5 6")
	r := &request{
		bounded: true, seen: echo{1, 2, 0}, period: 3, field: lane,
		limits: new(encodedLimits).learning(), groups: []group{{count: 2, costs: []int64{1}}},
		lesson: &lesson{place: 20, ordinal: 7, pacing: seen.pacing, seen: seen},
	}
	if !r.usual() {
		t.Fatalf("the request %+v is not usual", r)
	}
	spelled := []any{int64(9), int64(1), int64(2), int64(9), int64(0), int64(1), int64(3), int64(0), int64(0), int64(1), int64(9), int64(2), int64(9)}
	for _, good := range [][]any{
		{"", int64(9), int64(9), int64(0), int64(9), int64(7), int64(8), int64(9), int64(2)},
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), "", "", field),
	} {
		if got, err := r.decode(good); err != nil || got.count() != 2 || got.heard != (heard{first: 7, landed: 8, field: seen}) {
			t.Errorf("%v is read as %+v, %v", good, got, err)
		}
	}
	for _, bad := range [][]any{
		{"", int64(9), int64(9), int64(0), int64(9)},                                          // no ordinal
		{"", int64(9), int64(9), int64(0), int64(9), int64(7), int64(-8), int64(9), int64(2)}, // a negative one
		{"", int64(9), int64(9), int64(0), int64(9), int64(7), int64(8), int64(9)},
		spelled,
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), "", "", "10 20 125 2 0 0 0 0 15"),
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), "", "", "30 20 125 2 0 0 0 0 15 600000000"),
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), "", "", "10 20 0 2 0 0 0 0 15 600000000"),
		append(spelled[:len(spelled):len(spelled)], int64(-7), int64(0), int64(8), "", "", field),
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), strings.Repeat("x", mostMind+1), "", field),
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), "", int64(1), field),
	} {
		if got, err := r.decode(bad); err == nil {
			t.Errorf("%v is read as %+v", bad, got)
		}
	}
	for what, change := range map[string]func(*lesson){
		"something to tell":   func(t *lesson) { t.word.Data = []byte("x") },
		"departures to count": func(t *lesson) { t.word.Uncounted = 1 },
		"something to hear":   func(t *lesson) { t.place = 19 },
		"others who tell":     func(t *lesson) { t.lively = true },
		"another pace":        func(t *lesson) { t.unit = 126 },
	} {
		changed := *r.lesson
		if change(&changed); !changed.usual(true) || changed.quiet() {
			t.Errorf("who has %s does not talk in few words", what)
		}
		talking := *r
		talking.lesson = &changed
		heard := heard{7, 9, true, "", "told", seen}
		if got, err := talking.decode(append([]any{"", int64(9), int64(9), int64(0), int64(9), int64(9), int64(2)}, int64(7), int64(1), int64(9), "", "told", field)); err != nil || got.count() != 2 || got.heard != heard {
			t.Errorf("the reply to who has %s is read as %+v, %v", what, got, err)
		}
		for _, bad := range [][]any{
			{"", int64(9), int64(9), int64(0), int64(9), int64(7), int64(9), int64(2)}, // it tells nothing
			{"", int64(9), int64(9), int64(7), int64(1), int64(9), "", "told", field},
			{"", int64(9), int64(9), int64(0), int64(9), int64(9), int64(2), int64(-7), int64(1), "", "told", field},
		} {
			if got, err := talking.decode(bad); err == nil {
				t.Errorf("%v to who has %s is read as %+v", bad, what, got)
			}
		}
	}
	for what, change := range map[string]func(*lesson){
		"permits to revoke":    func(t *lesson) { t.word.Revoke = true },
		"what it knows":        func(t *lesson) { t.mind = []byte{} },
		"permits that lapsed":  func(t *lesson) { t.lapsed = 1 },
		"lost what it heard":   func(t *lesson) { t.place = 21 },
		"not heard the first":  func(t *lesson) { t.place = 9 },
		"a probe":              func(t *lesson) { t.alone, t.seen.alone = 1, 1 },
		"to end the probes":    func(t *lesson) { t.seen.alone = 1 },
		"never seen the field": func(t *lesson) { t.seen = learnedField{} },
		"a slow pace":          func(t *lesson) { t.unit, t.seen.unit = 2_000_002, 2_000_002 },
	} {
		changed := *r.lesson
		if change(&changed); changed.usual(true) {
			t.Errorf("who has %s calls in few words", what)
		}
	}
}

// What was told is heard up to where it makes no sense, and no further.
func TestFramesThatMakeNoSense(t *testing.T) {
	for told, want := range map[string]struct {
		heard []string
		read  int64
	}{
		"":                               {nil, 0},
		"7 9 3 abc8 9 0 ":                {[]string{"abc", ""}, 15},
		"7 9 3 abc8 9 4 abc":             {[]string{"abc"}, 9},
		"7 9 3 abc8 9":                   {[]string{"abc"}, 9},
		"7 9 -1 abc":                     {nil, 0},
		"x 9 3 abc":                      {nil, 0},
		"7 9 9223372036854775807 abc":    {nil, 0},
		"7 9 99999999999999999999 abc":   {nil, 0},
		"9007199254740992 9 3 abc":       {nil, 0},
		"9007199254740991 9 3 abc7 9 1 ": {[]string{"abc"}, 24},
	} {
		var heard []string
		read := frames([]byte(told), func(b []byte, _ int64, _ throttle.Instant) { heard = append(heard, string(b)) })
		if read != want.read || !slices.Equal(heard, want.heard) {
			t.Errorf("of %q %d bytes are heard, as %q, want %d, as %q", told, read, heard, want.read, want.heard)
		}
	}
}
