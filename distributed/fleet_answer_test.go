package distributed_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// A connection breaks within the reply to a take. The script has run and is not run again. Only
// what it granted is lost.
func TestR5ResetMidReplyRunsTheScriptOnce(t *testing.T) {
	t.Parallel()
	const whole = 40
	f := newFleet(t, plan{members: 2, config: config{
		Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, whole)}, OnLoss: distributed.FailClosed, Callers: -1, Deadline: patience, MaxDeadline: patience,
	}})
	cut, other := f.members[0], f.members[1]
	granted := 0
	take := func() {
		if cut.take(patience) == nil {
			granted++
		}
	}
	for _, end := range []redistest.End{redistest.FIN, redistest.RST} {
		for _, n := range []int{0, 1, 9} {
			take() // the connection is there, and the script
			f.links[0].CutNext(n, end)
			take()
			await(t, "the store to be found", func() bool { return !cut.state().Lost })
		}
	}
	f.conserved(other, whole, granted)
	if cut.state().Unknown == 0 {
		t.Error("no take was cut")
	}
}

// conserved takes what the limit has left. The test fails if that exceeds what was not granted. It
// may be less only by the permits of unanswered calls and by those voided on a busy machine.
func (f *fleet) conserved(at *replica, whole, granted int) {
	f.t.Helper()
	left, unknown, void := at.left(), 0, 0
	for _, s := range f.states() {
		unknown, void = unknown+int(s.Unknown), void+int(s.Void)
	}
	f.t.Logf("%d of %d permits were left, %d granted, %d unknown and %d void", left, whole, granted, unknown, void)
	if most := whole - granted; left > most || left < most-unknown-void {
		f.t.Errorf("%d of %d permits were left, want %d to %d", left, whole, most-unknown-void, most)
	}
}

// take waits for one permit, beside the fleet's callers.
func (r *replica) take(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return r.queue.Wait(ctx)
}

// left takes what the limit has left, which does not grow meanwhile.
func (r *replica) left() int {
	for n := 0; ; n++ {
		if r.take(patience) != nil {
			return n
		}
	}
}

// A missing script is loaded, and no caller sees an error.
func TestR6AMissingScriptIsNoError(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3, config: patiently()})
	f.steady()
	for range 20 {
		f.do("SCRIPT", "FLUSH")
		f.pass(50 * time.Millisecond)
	}
	for i, s := range f.states() {
		if s.Failures > 0 {
			t.Errorf("replica %d: %d calls of %d failed", i, s.Failures, s.Calls)
		}
	}
	f.judge()
}

// A server that loads its data from disk refuses calls for a while.
func TestR7LoadingPacesHereAndComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	f.do("DEBUG", "POPULATE", "1000")
	f.do("SAVE")
	f.pass(moment)
	from := now()
	spells := f.suffer(3, moment, func() {
		f.server.Restart("--key-load-delay", "1500", "--loading-process-events-interval-bytes", "1024", "--save", "60 1")
		if _, err := f.server.Do("GET", "key:1"); err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
			t.Logf("the server does not load: %v", err)
		}
	}, func() {
		await(t, "the server to have its data", func() bool {
			_, err := f.server.Do("GET", "key:1")
			return err == nil
		})
	})
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}

// The server becomes a read-only replica, and then a master again, without its data.
func TestR8ReadOnlyPacesHereAndComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	other := redistest.Start(t)
	f.steady()
	f.pass(moment)
	from := now()
	spells := f.suffer(3, 2*moment, func() { f.server.Follow(other.Addr()) }, f.server.Promote)
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}

// Redis is out of memory and evicts nothing.
func TestR13OutOfMemoryPacesHereAndComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	f.pass(moment)
	f.judge(f.suffer(3, 2*moment,
		func() { f.do("CONFIG", "SET", "maxmemory", "1") },
		func() { f.do("CONFIG", "SET", "maxmemory", "0") })...)
}

// Another client's script does not end, and the server refuses all commands.
func TestR12ABusyServerPacesHereAndComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	f.do("CONFIG", "SET", "lua-time-limit", "50") // busy-reply-threshold, as it was called before Redis 7
	other := place{Addrs: []string{f.server.Addr()}}.client()
	defer other.Close()
	f.pass(moment)
	busy := make(chan error, 1)
	f.judge(f.suffer(3, moment,
		func() {
			go func() { busy <- other.Eval(context.Background(), "while true do end", nil).Err() }()
			await(t, "the server to be busy", func() bool {
				_, err := f.server.Do("GET", "key")
				return err != nil && strings.HasPrefix(err.Error(), "BUSY ")
			})
		},
		func() {
			await(t, "the script to be killed", func() bool { return other.ScriptKill(t.Context()).Err() == nil })
			<-busy
		})...)
}

// The server requires more replicas before it accepts a write.
func TestR15TooFewReplicasPacesHereAndComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	f.pass(moment)
	f.judge(f.suffer(3, moment,
		func() { f.do("CONFIG", "SET", "min-replicas-to-write", "1") },
		func() { f.do("CONFIG", "SET", "min-replicas-to-write", "0") })...)
}

// The server is stopped with calls in its sockets, and runs them when it continues: they cost
// permits and grant none.
func TestR22AStoppedServerPacesHereAndComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	f.pass(moment)
	spells := f.suffer(3, 2*moment, f.server.Stop, f.server.Continue)
	f.pass(moment)
	for i, s := range f.states() {
		t.Logf("replica %d: %d permits may be lost, %d calls of %d failed", i, s.Unknown, s.Failures, s.Calls)
	}
	f.judge(spells...)
}

// A call sent to a stopped server runs once when it continues. Its permit is granted to no caller,
// and counted.
func TestR22AGhostTakeIsCountedOnce(t *testing.T) {
	t.Parallel()
	const whole = 10
	f := newFleet(t, plan{members: 1, config: config{
		Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, whole)}, OnLoss: distributed.FailClosed, Callers: -1,
	}})
	c := f.way()
	c.Deadline, c.MaxDeadline = patience, patience
	ghost, other := f.members[0], f.join(c)
	granted := 0
	await(t, "a first permit", func() bool {
		if ghost.take(patience) == nil {
			granted++
		}
		return granted > 0
	})
	f.server.Stop()
	if err := ghost.take(patience); !errors.Is(err, distributed.ErrUnavailable) {
		t.Errorf("a take from a stopped server: %v, want ErrUnavailable", err)
	}
	f.server.Continue()
	await(t, "the store to be found", func() bool { return !ghost.state().Lost })
	f.conserved(other, whole, granted)
}

// Foreign values in the key are replaced. The limits hold, except for what was saved.
func TestR19GarbageInTheKeyIsHealed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3, config: patiently()})
	f.steady()
	key := f.key()
	var spells []spell
	for _, garbage := range []string{
		"'SET', KEYS[1], 'text'", "'RPUSH', KEYS[1], 'a', 'b'", "'XADD', KEYS[1], '*', 'a', 'b'",
		"'HSET', KEYS[1], 'lane', 'x', '=requests', '1 2 3', 'field', 'value'",
		"'HSET', KEYS[1], 'lane', string.rep('9', 1000), 'at', '1e999'",
	} {
		f.pass(moment / 2)
		from := now()
		f.do("EVAL", "redis.call('DEL', KEYS[1]) return redis.call("+garbage+")", "1", key)
		await(t, "the key to be healed", func() bool { return f.do("TYPE", key) == "hash" })
		f.pass(moment / 2)
		spells = append(spells, f.lost(from, now()))
	}
	for i, s := range f.states() {
		if s.Failures > 5 { // one for each
			t.Errorf("replica %d: %d calls of %d failed", i, s.Failures, s.Calls)
		}
	}
	f.judge(spells...)
}

// key returns the key of the state of the fleet's lane.
func (f *fleet) key() string {
	f.t.Helper()
	keys, _ := f.do("KEYS", "weir:*").([]any)
	if len(keys) != 1 {
		f.t.Fatalf("keys %v, want one of weir's", keys)
	}
	return keys[0].(string)
}
