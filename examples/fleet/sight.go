package main

import (
	"fmt"
	"strings"
	"time"
)

// A sight is the state of a run at one instant.
type sight struct {
	at, length time.Duration
	replicas   []replicaSight
	limit      float64 // calls per second
	lately     int     // calls of all in the last second
	total      int
	worst      int // most calls in any second
	bound      int // on worst
	refused    int
}

// A replicaSight is the state of one replica.
type replicaSight struct {
	lately int // calls in the last second
	total  int
	state  string
}

func (w *watcher) look(at time.Duration) sight {
	arrivals := w.vendor.arrivals()
	s := sight{
		at:       at,
		length:   w.length,
		replicas: make([]replicaSight, len(w.fleet.replicas)),
		limit:    w.room.limit.PerSecond(),
		total:    len(arrivals),
		worst:    arrivals.MaxIn(time.Second),
		bound:    w.room.inSecond(),
	}
	for _, a := range arrivals {
		r := &s.replicas[replicaOf(a)-1]
		r.total++
		if a.At > at-time.Second {
			r.lately++
			s.lately++
		}
		if isRefusal(a) {
			s.refused++
		}
	}
	for i, state := range w.fleet.states() {
		s.replicas[i].state = state
	}
	return s
}

// summary returns the state of all.
func (s sight) summary() string {
	return fmt.Sprintf("%*d/s of %.4g/s  worst second %d of %d  %d 429s",
		len(fmt.Sprintf("%.0f", s.limit)), s.lately, s.limit, s.worst, s.bound, s.refused)
}

// states counts the replicas in each state: "7 shared, 1 killed".
func (s sight) states() string {
	var words []string
	counts := map[string]int{}
	for _, r := range s.replicas {
		if counts[r.state] == 0 {
			words = append(words, r.state)
		}
		counts[r.state]++
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%d %s", counts[word], word)
	}
	return strings.Join(words, ", ")
}

// states returns a word or two on each replica.
func (f *fleet) states() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	words := make([]string, len(f.replicas))
	for i, r := range f.replicas {
		words[i] = r.words()
	}
	return words
}

func (r *replica) words() string {
	switch {
	case r.state == killed:
		return "killed"
	case r.state == stopped:
		return "stopped"
	case r.last.Paused > 0:
		return "paused"
	case r.last.Store.Lost:
		return "lost: " + r.last.Store.Cause
	default:
		return "shared"
	}
}
