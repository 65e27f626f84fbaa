package learn_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// Answers in any order teach the same. Eight calls are in flight at once, to a vendor of 50/s that
// reports nothing, and land in random order. The states differ meanwhile, and so do the resulting
// paces, but the learned rate is the same.
func TestWhatIsFoundDoesNotDependOnOrderOfLanding(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rate, refused := shuffled(func(n int, swap func(i, j int)) { rng.Shuffle(n, swap) })
		if math.Abs(rate-50) > 2.5 || refused > 60 {
			t.Errorf("seed %d: found %.1f/s of 50/s, with %d of 3,000 refused", seed, rate, refused)
		}
	}
}

// shuffled sends 3,000 calls, whose answers land by eights in some order, and returns the learned
// rate, and the number of refusals.
func shuffled(shuffle func(int, func(i, j int))) (rate float64, refused int) {
	s := learn.New(learn.Setting{})
	left, last, tokens := at(0), at(0), float64(burst)
	for granted := int64(0); granted < 3000; {
		var flying []learn.Fact
		p := s.Plan(left, granted)
		for len(flying) < 8 && (p.Most == 0 || len(flying) < p.Most) {
			granted++
			f := learn.Fact{Departed: left, Ordinal: granted, Flying: len(flying) + 1, Waited: true}
			tokens = min(burst, tokens+50*left.Sub(last).Seconds())
			last = left
			if f.Refused = tokens < 1; f.Refused {
				refused++
			} else {
				tokens--
			}
			flying = append(flying, f)
			if left = left.Add(time.Millisecond); p.Rate > 0 {
				left = left.Add(time.Duration(1e9/p.Rate) - time.Millisecond)
			}
		}
		shuffle(len(flying), func(i, j int) { flying[i], flying[j] = flying[j], flying[i] })
		for i := range flying {
			left = left.Add(100 * time.Microsecond)
			flying[i].Landed, flying[i].Granted = left, granted
		}
		s = feed(s, flying...)
		left = max(left, s.Plan(left, granted).Hold)
	}
	return s.W, refused
}
