package main

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

var allKinds = []kind{killReplica, stopReplica, killRedis, stopRedis, flushRedis, refuseCall}

func TestScheduleIsTheSeeds(t *testing.T) {
	one, again := plan(1, time.Minute, 8, allKinds), plan(1, time.Minute, 8, allKinds)
	if !slices.Equal(one, again) {
		t.Errorf("two schedules of one seed:\n%v\n%v", one, again)
	}
	if slices.Equal(one, plan(2, time.Minute, 8, allKinds)) {
		t.Error("two seeds give one schedule")
	}
}

func TestSchedule(t *testing.T) {
	for seed := range uint64(100) {
		events := plan(seed, 20*time.Second, 3, allKinds)
		if len(events) != len(allKinds) {
			t.Fatalf("seed %d: %d events in 20 s, want each of %d kinds once", seed, len(events), len(allKinds))
		}
		var free time.Duration
		seen := map[kind]bool{}
		for _, e := range events {
			if e.at < free+500*time.Millisecond || e.at+e.lasts > 20*time.Second-quietEnd {
				t.Errorf("seed %d: %v at %v, the one before until %v", seed, e, e.at, free)
			}
			if ofReplica := e.kind == killReplica || e.kind == stopReplica; ofReplica != (e.replica > 0) || e.replica > 3 {
				t.Errorf("seed %d: %v of replica %d", seed, e, e.replica)
			}
			if seen[e.kind] {
				t.Errorf("seed %d: %v twice", seed, e)
			}
			seen[e.kind] = true
			free = e.at + e.lasts
		}
	}
	if n := len(plan(1, leastChaos, 1, allKinds)); n != 1 {
		t.Errorf("%d events in the shortest run, want 1", n)
	}
}

func TestScheduleInWords(t *testing.T) {
	ms := time.Millisecond
	var got bytes.Buffer
	writeSchedule(&got, 5, []event{
		{at: 1900 * ms, kind: killReplica, replica: 3, lasts: 1200 * ms},
		{at: 4000 * ms, kind: stopReplica, replica: 1, lasts: 1000 * ms},
		{at: 7500 * ms, kind: killRedis, lasts: 1800 * ms},
		{at: 9900 * ms, kind: stopRedis, lasts: 1500 * ms},
		{at: 13000 * ms, kind: flushRedis},
		{at: 16000 * ms, kind: refuseCall},
	})
	const want = `
What goes wrong, by the seed 5:
    1.9 s  replica 3 killed, started again after 1.2 s
    4.0 s  replica 1 stopped for 1.0 s
    7.5 s  Redis killed, started again after 1.8 s
    9.9 s  Redis stopped for 1.5 s
   13.0 s  Redis flushed
   16.0 s  the vendor answers one call with 429, Retry-After: 1
`
	if got.String() != want {
		t.Errorf("schedule:\n%s\nwant:\n%s", &got, want)
	}
}
