package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/needs"
	"github.com/weirgo/weir/throttle"
)

// newFleet returns two ready replicas, with their Redis and vendor.
func newFleet(t *testing.T, fail func(error)) (*fleet, mini, *vendor) {
	t.Helper()
	server, err := openMini()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.close)
	o := options{replicas: 2, workers: 2, limit: throttle.TokenBucket(50, time.Second, 5)}
	v, err := openVendor(o.limit.Permits, o.limit.Per, 2*o.limit.Burst)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	f, err := openFleet(o.task(v, server), fail)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.end)
	return f, server, v
}

func failsNever(t *testing.T) func(error) {
	return func(err error) { t.Errorf("fail(%v)", err) }
}

// eventually fails the test unless the condition holds in time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

func (v *vendor) callsOf(n int) int {
	calls := 0
	for _, a := range v.arrivals() {
		if replicaOf(a) == n {
			calls++
		}
	}
	return calls
}

func TestReplicasWaitUntilTheyMayBegin(t *testing.T) {
	f, _, v := newFleet(t, failsNever(t))
	if n := len(v.arrivals()); n > 0 {
		t.Errorf("%d calls before the begin", n)
	}
	f.begin()
	eventually(t, "both call", func() bool { return v.callsOf(1) > 0 && v.callsOf(2) > 0 })
}

func TestKilledReplicaIsStartedAgain(t *testing.T) {
	f, _, v := newFleet(t, failsNever(t))
	f.begin()
	eventually(t, "replica 2 calls", func() bool { return v.callsOf(2) > 0 })
	if err := f.kill(2); err != nil {
		t.Fatal(err)
	}
	if got := f.states()[1]; got != "killed" {
		t.Errorf("state %q, want killed", got)
	}
	before := v.callsOf(2)
	if err := f.restart(2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "replica 2 calls again", func() bool { return v.callsOf(2) > before })
	f.end()
	if f.replicas[0].starts != 1 || f.replicas[1].starts != 2 {
		t.Errorf("starts %d and %d, want 1 and 2", f.replicas[0].starts, f.replicas[1].starts)
	}
}

func TestStoppedReplicaEndsWithTheFleet(t *testing.T) {
	if !canHalt {
		needs.Lacks(t, "SIGSTOP")
	}
	f, _, _ := newFleet(t, failsNever(t))
	f.begin()
	if err := f.halt(1); err != nil {
		t.Fatal(err)
	}
	if got := f.states()[0]; got != "stopped" {
		t.Errorf("state %q, want stopped", got)
	}
	f.end()
	for _, r := range f.replicas {
		if !r.process.ended() {
			t.Errorf("replica %d still runs", r.number)
		}
	}
}

func TestReplicaThatEndsByItselfIsReported(t *testing.T) {
	lost := make(chan error, 1)
	f, _, _ := newFleet(t, func(err error) { lost <- err })
	if err := f.replicas[0].process.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err == nil || !strings.Contains(err.Error(), "replica 1: ") {
		t.Errorf("fail(%v), want replica 1 named", err)
	}
}

func TestRefusalByScheduleHitsOneCall(t *testing.T) {
	f, _, v := newFleet(t, failsNever(t))
	f.begin()
	v.refuse()
	eventually(t, "a call is refused", func() bool { return v.fired.Load() == 1 })
	eventually(t, "a replica is paused", func() bool { return f.states()[0] == "paused" || f.states()[1] == "paused" })
}

func TestLossOfRedisIsReported(t *testing.T) {
	f, server, _ := newFleet(t, failsNever(t))
	f.begin()
	if err := server.begin(killRedis); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both lost", func() bool {
		return strings.HasPrefix(f.states()[0], "lost: ") && strings.HasPrefix(f.states()[1], "lost: ")
	})
	if err := server.end(killRedis); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both shared again", func() bool { return f.states()[0] == "shared" && f.states()[1] == "shared" })
}
