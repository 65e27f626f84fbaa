package distributed

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/throttle"
)

// Who learns calls in few words, whether there is something to tell or not: with a learned
// pace, with a configured limit, and with both. What another tells is heard all the same.
func TestWhoLearnsCallsInFewWords(t *testing.T) {
	paced := store.Pacing{Counted: true, Interval: time.Microsecond}
	bucket := []throttle.Limit{throttle.TokenBucket(1_000_000, time.Second, 1)}
	for name, c := range map[string]struct {
		pace   store.Pacing
		limits []throttle.Limit
		tells  bool
	}{
		"a bucket, nothing learned": {store.Pacing{}, bucket, false},
		"a pace":                    {paced, nil, false},
		"a bucket and a pace":       {paced, bucket, false},
		"a pace, and much to tell":  {paced, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := newClass(t)
			other, s := all.seat(c.pace, c.limits...), all.seat(c.pace, c.limits...)
			var words wordCount
			s.limiter.link.client.AddHook(&words)
			const calls, told = 200, 5
			for i := range calls {
				if i%(calls/told) == 0 {
					other.tell("word")
					eventually(t, "it is told", func() bool { return strings.Count(strings.Join(other.knows(), " "), "word") > i/(calls/told) })
				}
				if c.tells {
					s.say(store.Entry{Data: []byte("spoke")})
				}
				s.call(t)
			}
			few, many := words.few.Load(), words.many.Load()
			if t.Logf("%d calls in few words, %d in many", few, many); few < calls*3/4 || strings.Count(strings.Join(s.knows(), " "), "word") != told {
				t.Errorf("%d calls in few words heard %d words, want %d and %d", few, len(s.knows()), calls*3/4, told)
			}
		})
	}
}

// A wordCount counts calls of the script by what decided them.
type wordCount struct {
	passing
	few, many atomic.Int64
}

func (w *wordCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(*redis.Cmd); ok && strings.HasPrefix(cmd.Name(), "eval") && err == nil {
			if _, few := c.Val().([]any)[0].(string); few {
				w.few.Add(1)
			} else {
				w.many.Add(1)
			}
		}
		return err
	}
}

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
