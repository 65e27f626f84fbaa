package learn_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// refusedAfter returns the state after calls that were served after ten seconds, so many, and a refusal that took
// a time with so many calls in flight.
func refusedAfter(served int, shared bool, flying int, took time.Duration) learn.State {
	s := learn.New(learn.Setting{Shared: shared})
	for n := range int64(served) {
		s = feed(s, learn.Fact{Ordinal: n + 1, Granted: n + 1, Flying: 1, Waited: true, Departed: at(1), Landed: at(11)})
	}
	return feed(s, learn.Fact{Ordinal: 30, Granted: 30, Flying: flying, Waited: true, Refused: true, Departed: at(12), Landed: at(12).Add(took)})
}

// A probe that would have been refused by now has passed, if refusals come much sooner than answers, or no answer
// has come yet. Where calls in flight may be what is refused, it shows nothing once one of them was served. A
// process that shares the lane does not know all of them.
func TestUnansweredProbePassesIfRefusalsAreFast(t *testing.T) {
	for _, r := range []struct {
		served, flying int
		shared         bool
		took, want     time.Duration
	}{
		{1, 2, false, 10 * time.Millisecond, 50 * time.Millisecond},
		{1, 2, false, 300 * time.Millisecond, 1200 * time.Millisecond},
		{1, 2, false, 3 * time.Second, time.Hour},
		{1, 2, true, 10 * time.Millisecond, time.Hour},
		{0, 9, false, 10 * time.Millisecond, 50 * time.Millisecond},
		{0, 9, false, 3 * time.Second, 12 * time.Second},
		{1, 9, false, 10 * time.Millisecond, time.Hour},
	} {
		s := refusedAfter(r.served, r.shared, r.flying, r.took)
		if s.Passed() != r.want {
			t.Errorf("%d served, shared %v, refused after %v with %d in flight: %v, want %v", r.served, r.shared, r.took, r.flying, s.Passed(), r.want)
		}
	}
	s := refusedAfter(0, false, 9, 10*time.Millisecond)
	s = feed(s, learn.Fact{Ordinal: 2, Granted: 30, Flying: 2, Waited: true, Departed: at(11), Landed: at(13)})
	if s.Passed() != time.Hour {
		t.Errorf("after a call of before the refusal was served: %v, want an hour", s.Passed())
	}
}

// A window that others had used up serves one call after a long silence: a rate of one call in that time is far too
// low, so calls leave as without a limit.
func TestProbeOfALongSilenceHasNotPassed(t *testing.T) {
	s := refusedAfter(0, false, 1, 10*time.Millisecond)
	n := int64(30)
	for s.Passed() == 50*time.Millisecond && n < 99 {
		n++
		left := s.Next
		s = feed(s, learn.Fact{Ordinal: n, Granted: n, Flying: 1, Waited: true, Refused: true, Departed: left, Landed: left.Add(10 * time.Millisecond)})
	}
	if silence := s.Next.Sub(at(12)); s.Passed() != time.Hour || silence < 2*time.Second || silence > 10*time.Second {
		t.Errorf("probes pass after %v until a silence of %v", s.Passed(), silence)
	}
}

// A window that the lane itself has used up is long, so it is not probed many times in a second.
func TestSpentWindowIsProbedLater(t *testing.T) {
	for _, period := range []float64{0, 40} {
		s := refusedAfter(20, false, 2, 10*time.Millisecond)
		s.Episode, s.P, s.W, s.R = false, period, 20, 20
		s = feed(s, learn.Fact{Ordinal: 31, Granted: 31, Flying: 2, Waited: true, Refused: true, Departed: at(20), Landed: at(20.01)})
		if gap := s.Next.Sub(at(20.01)); (gap > time.Second) != (period > 0) || gap > 2*time.Second {
			t.Errorf("a period of %v s: the first probe after %v", period, gap)
		}
	}
}

// Such a probe ends the episode, and no calls in flight are counted.
func TestPassedProbeEndsTheEpisode(t *testing.T) {
	for _, flying := range []int{2, 9} {
		s := refusedAfter(0, false, flying, 10*time.Millisecond)
		s.Pass(&learn.Fact{Ordinal: 31, Flying: 8, Waited: true, Departed: at(13), Landed: at(13.1)})
		if s.Episode || s.Mode != learn.Rate || s.W == 0 {
			t.Errorf("refused with %d in flight: episode %v, mode %v, estimate %v/s", flying, s.Episode, s.Mode, s.W)
		}
	}
}

// Answers may take no time by a coarse clock. Calls are counted nevertheless from the first one on, so each
// refusal brings the estimate nearer to what was served.
func TestAnswersThatTakeNoTimeShowARate(t *testing.T) {
	s := learn.New(learn.Setting{})
	for n := range int64(501) {
		left := at(float64(n) / 100)
		s = feed(s, learn.Fact{Ordinal: n + 1, Granted: n + 1, Flying: 1, Waited: true, Refused: n%100 == 99, Departed: left, Landed: left})
	}
	if s.W < 50 || s.W > 5_000 {
		t.Errorf("100 calls in each second were served, and the estimate is %g/s, want less than 5,000/s", s.W)
	}
}
