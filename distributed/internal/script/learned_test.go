package script

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/throttle"
)

// The learned part of a reply is read as it was written, and an invalid one is an error.
func TestReplyThatTeaches(t *testing.T) {
	const field = "10 20 125 2 0 0 0 0 15 600000000 1 3 0 0 0 0"
	seen, ok := readLearnedField(field)
	want := LearnedField{text: field, From: 10, To: 20, pacing: pacing{unit: 125, den: 2, keep: 600_000_000, unbound: 1, reserve: 3}}
	if !ok || seen != want {
		t.Fatalf("%q is read as %+v, %v, want %+v", field, seen, ok, want)
	}
	lane, _ := readLaneField("1 2 0 3 4 5 6")
	r := &Request{
		Seen: Echo{1, 2, 0}, Period: 3, Field: lane,
		Limits: new(EncodedLimits).Learning(), Groups: []Group{{Count: 2, Costs: []int64{1}}},
		Update: &Update{Place: 20, Ordinal: 7, pacing: seen.pacing, Seen: seen},
	}
	if !r.usual() {
		t.Fatalf("the request %+v is not usual", r)
	}
	spelled := []any{int64(9), int64(1), int64(2), int64(9), int64(0), int64(1), int64(3), int64(0), int64(0), int64(1), int64(9), int64(2), int64(9)}
	for _, good := range [][]any{
		{"", int64(9), int64(9), int64(0), int64(9), int64(7), int64(8), int64(9), int64(2)},
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), "", "", field),
	} {
		if got, err := r.Decode(good); err != nil || got.Count() != 2 || got.Learned != (Learned{First: 7, Landed: 8, Field: seen}) {
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
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), strings.Repeat("x", mostSnapshot+1), "", field),
		append(spelled[:len(spelled):len(spelled)], int64(7), int64(0), int64(8), "", int64(1), field),
	} {
		if got, err := r.Decode(bad); err == nil {
			t.Errorf("%v is read as %+v", bad, got)
		}
	}
	for what, change := range map[string]func(*Update){
		"a message to send":   func(t *Update) { t.Entry.Data = []byte("x") },
		"departures to count": func(t *Update) { t.Entry.Uncounted = 1 },
		"messages to apply":   func(t *Update) { t.Place = 19 },
		"others that send":    func(t *Update) { t.Lively = true },
		"another pace":        func(t *Update) { t.unit = 126 },
	} {
		changed := *r.Update
		if change(&changed); !changed.usual(true) || changed.quiet() {
			t.Errorf("a caller with %s does not talk in few arguments", what)
		}
		talking := *r
		talking.Update = &changed
		learned := Learned{7, 9, true, "", "entries", seen}
		if got, err := talking.Decode(append([]any{"", int64(9), int64(9), int64(0), int64(9), int64(9), int64(2)}, int64(7), int64(1), int64(9), "", "entries", field)); err != nil || got.Count() != 2 || got.Learned != learned {
			t.Errorf("the reply to a caller with %s is read as %+v, %v", what, got, err)
		}
		for _, bad := range [][]any{
			{"", int64(9), int64(9), int64(0), int64(9), int64(7), int64(9), int64(2)}, // it reports nothing
			{"", int64(9), int64(9), int64(7), int64(1), int64(9), "", "entries", field},
			{"", int64(9), int64(9), int64(0), int64(9), int64(9), int64(2), int64(-7), int64(1), "", "told", field},
		} {
			if got, err := talking.Decode(bad); err == nil {
				t.Errorf("%v to a caller with %s is read as %+v", bad, what, got)
			}
		}
	}
	for what, change := range map[string]func(*Update){
		"permits to revoke":    func(t *Update) { t.Entry.Revoke = true },
		"what it knows":        func(t *Update) { t.Snapshot = []byte{} },
		"permits that lapsed":  func(t *Update) { t.Lapsed = 1 },
		"lost what it applied": func(t *Update) { t.Place = 21 },
		"without the first":    func(t *Update) { t.Place = 9 },
		"a probe":              func(t *Update) { t.alone, t.Seen.alone = 1, 1 },
		"to end the probes":    func(t *Update) { t.Seen.alone = 1 },
		"never seen the field": func(t *Update) { t.Seen = LearnedField{} },
		"a slow pace":          func(t *Update) { t.unit, t.Seen.unit = 2_000_002, 2_000_002 },
	} {
		changed := *r.Update
		if change(&changed); changed.usual(true) {
			t.Errorf("a caller with %s sends few arguments", what)
		}
	}
}

// Messages are applied up to the first invalid one.
func TestFramesThatMakeNoSense(t *testing.T) {
	for entries, want := range map[string]struct {
		applied []string
		read    int64
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
		var applied []string
		read := Frames(entries, func(b []byte, _ int64, _ throttle.Instant) { applied = append(applied, string(b)) })
		if read != want.read || !slices.Equal(applied, want.applied) {
			t.Errorf("of %q %d bytes are applied, as %q, want %d, as %q", entries, read, applied, want.read, want.applied)
		}
	}
}
