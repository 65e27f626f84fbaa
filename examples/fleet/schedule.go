package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// A kind is one kind of fault.
type kind uint8

const (
	killReplica kind = iota
	stopReplica
	killRedis
	stopRedis
	flushRedis
	refuseCall
)

// An event is a fault at one time.
type event struct {
	at      time.Duration // since the run began
	lasts   time.Duration // zero: no end
	kind    kind
	replica int // zero: none
}

// The run is cut into slots with one event in each, except for the first and the last seconds. An
// event begins early in its slot, and ends in time for the fleet to recover before the next.
const (
	quietStart = 1500 * time.Millisecond
	quietEnd   = 500 * time.Millisecond
	slot       = 3 * time.Second
	leastChaos = quietStart + slot + quietEnd
)

// plan returns the events of a run, in order. The same arguments give the same
// events. Each kind comes once before any comes twice.
func plan(seed uint64, length time.Duration, replicas int, kinds []kind) []event {
	random := rand.New(rand.NewPCG(seed, 0))
	between := func(low, high int) time.Duration { // in tenths of a second
		return time.Duration(low+random.IntN(high-low+1)) * 100 * time.Millisecond
	}
	var events []event
	var left []kind
	for from := quietStart; from+slot <= length-quietEnd; from += slot {
		if len(left) == 0 {
			left = append(left, kinds...)
			random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		e := event{kind: left[0], at: from + between(0, 6)}
		left = left[1:]
		switch e.kind {
		case killReplica, stopReplica:
			e.replica = 1 + random.IntN(replicas)
			e.lasts = between(10, 18)
		case killRedis, stopRedis:
			e.lasts = between(10, 18)
		}
		events = append(events, e)
	}
	return events
}

// count returns how many events are of the given kinds.
func count(events []event, ks ...kind) int {
	n := 0
	for _, e := range events {
		if slices.Contains(ks, e.kind) {
			n++
		}
	}
	return n
}

// String returns the event without its time: "replica 3 killed, started again after 1.2 s".
func (e event) String() string {
	after := fmt.Sprintf("%.1f s", e.lasts.Seconds())
	switch e.kind {
	case killReplica, killRedis:
		return e.label() + ", started again after " + after
	case stopReplica, stopRedis:
		return e.label() + " for " + after
	case refuseCall:
		return "the vendor answers one call with " + e.label()
	default:
		return e.label()
	}
}

// label returns a text short enough for the picture.
func (e event) label() string {
	switch e.kind {
	case killReplica:
		return fmt.Sprintf("replica %d killed", e.replica)
	case stopReplica:
		return fmt.Sprintf("replica %d stopped", e.replica)
	case killRedis:
		return "Redis killed"
	case stopRedis:
		return "Redis stopped"
	case flushRedis:
		return "Redis flushed"
	case refuseCall:
		return fmt.Sprintf("429, Retry-After: %d", pauseAsked)
	default:
		return fmt.Sprintf("kind(%d)", e.kind)
	}
}

func writeSchedule(w io.Writer, seed uint64, events []event) {
	fmt.Fprintf(w, "\nWhat goes wrong, by the seed %d:\n", seed)
	for _, e := range events {
		fmt.Fprintf(w, "  %5.1f s  %v\n", e.at.Seconds(), e)
	}
}
