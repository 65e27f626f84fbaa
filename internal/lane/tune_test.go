package lane

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A new limit takes the place of the old one of its unit that is most like it.
func TestNewLimitsHaveThePlacesOfOldOnes(t *testing.T) {
	second, minute := throttle.TokenBucket(10, time.Second, 1), throttle.TokenBucket(100, time.Minute, 1)
	tokens := func(l throttle.Limit) throttle.Limit { return l.Of("tokens") }
	tests := []struct {
		name           string
		old, new, want []throttle.Limit
		priced         bool
		err            string
	}{
		{"by name", []throttle.Limit{second.Named("x"), minute.Named("y")}, []throttle.Limit{second.Named("y"), minute.Named("x")},
			[]throttle.Limit{minute.Named("x"), second.Named("y")}, false, ""},
		{"by length", []throttle.Limit{second, minute}, []throttle.Limit{throttle.TokenBucket(50, time.Minute, 1), throttle.TokenBucket(5, time.Second, 1)},
			[]throttle.Limit{throttle.TokenBucket(5, time.Second, 1), throttle.TokenBucket(50, time.Minute, 1)}, false, ""},
		{"by unit alone", []throttle.Limit{second, tokens(second)}, []throttle.Limit{tokens(minute), minute}, []throttle.Limit{minute, tokens(minute)}, false, ""},
		{"one more comes last", []throttle.Limit{minute}, []throttle.Limit{second, minute}, []throttle.Limit{minute, second}, false, ""},
		{"one fewer", []throttle.Limit{second, minute}, []throttle.Limit{minute}, []throttle.Limit{minute}, false, ""},
		{"one fewer, and requests are priced", []throttle.Limit{second, tokens(second)}, []throttle.Limit{second}, nil, true, `fewer limits of "tokens" than before`},
		{"one fewer of a unit, and requests are priced", []throttle.Limit{second, minute}, []throttle.Limit{second}, nil, true, `fewer limits of "requests" than before`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newLanes()
			s.settings.Priced = func() bool { return test.priced }
			got, err := s.Ordered(test.old, test.new)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("Ordered: %v, want an error with %q", err, test.err)
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("Ordered = %v, want %v", got, test.want)
			}
		})
	}
}

// The error names ten lanes, and counts the others.
func TestRetuneNamesSomeLanes(t *testing.T) {
	s := newLanes()
	defer s.Close()
	for i := range 12 {
		call(t, s, fmt.Sprint("lane", i))
	}
	bad := throttle.Limit{}
	s.settings.Limits = func(string) []throttle.Limit { return []throttle.Limit{bad} }
	err := s.Retune()
	if err == nil || strings.Count(err.Error(), "limits of lane") != 10 || !strings.Contains(err.Error(), " of 2 more lanes") {
		t.Errorf("Retune of 12 lanes with a limit that does not validate: %v, want ten names and 2 more", err)
	}
}

// If limits change while a lane is asked for its own, it gets the latest.
func TestLaneGetsTheLatestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		defer s.Close()
		l := call(t, s, "a")
		limit := throttle.LeakyBucket(1, time.Second)
		asked := 0
		s.settings.Limits = func(string) []throttle.Limit {
			was := limit
			if asked++; asked == 1 {
				limit = throttle.LeakyBucket(2, time.Second)
				s.changes.Add(1)
			}
			return []throttle.Limit{was}
		}
		if err := s.Retune(); err != nil || l.Limits()[0].Permits != 2 || asked != 2 {
			t.Errorf("Retune: %v, limits %v after %d questions, want 2/1s after 2", err, l.Limits(), asked)
		}
	})
}

// A lane that starts to price its calls while it runs is held to what is reported of them.
func TestRetuneHoldsToQuotasOfNewUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		defer s.Close()
		l := call(t, s, "a")
		if l.ledgers.Hold() {
			t.Fatal("a lane without priced limits has ledgers")
		}
		s.settings.Limits = func(string) []throttle.Limit {
			return []throttle.Limit{throttle.TokenBucket(1000, time.Second, 1000).Of("tokens")}
		}
		if err := s.Retune(); err != nil || !l.ledgers.Hold() {
			t.Errorf("Retune: %v, ledgers: %v, want one of tokens", err, l.ledgers.Hold())
		}
	})
}

// A bucket's sub-lane learns as its lane does: with configured limits it does not begin with one
// call in flight.
func TestRetuneReachesTheSublanesOfBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		defer s.Close()
		sub := s.Sublane(call(t, s, "a"), "bucket x", Bucket)
		sub.Course.Depart(sub.Now())
		if sub.Course.Calm() {
			t.Error("a second call is free to depart without limits")
		}
		s.settings.Limits = func(string) []throttle.Limit { return []throttle.Limit{throttle.LeakyBucket(9, time.Second)} }
		if err := s.Retune(); err != nil || !sub.Course.Calm() {
			t.Errorf("Retune: %v, and a second call is held although the lane has a limit", err)
		}
	})
}
