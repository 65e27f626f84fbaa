package distributed_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A diary holds the lines that a store's logger wrote.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(b)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func (d *diary) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(d, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

const password = "canary-0bef9c"

// grant creates the user weir with the given permissions.
func grant(t *testing.T, s *redistest.Server, granted ...string) {
	t.Helper()
	args := append([]string{"ACL", "SETUSER", "weir", "reset", "on", ">" + password}, granted...)
	if _, err := s.Do(args...); err != nil {
		t.Fatalf("ACL SETUSER %v: %v", granted, err)
	}
}

// aclLog returns what Redis has refused since the ACL log was reset.
func aclLog(t *testing.T, s *redistest.Server) []any {
	t.Helper()
	refused, err := s.Do("ACL", "LOG")
	if err != nil {
		t.Fatal(err)
	}
	return refused.([]any)
}

// A user with only the documented grants can do everything that a store does.
func TestR16TheMinimumACLIsEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	grant(t, server, strings.Fields(distributed.MinimumACL)...)
	if _, err := server.Do("ACL", "SETUSER", "default", "off"); err != nil {
		t.Fatal(err)
	}
	var log diary
	c := patiently(throttle.TokenBucket(rate, time.Second, burst), throttle.SlidingLog(rate, time.Second),
		throttle.FixedWindow(rate, time.Second), throttle.SlidingWindow(rate, time.Second))
	c.Redis = place{User: "weir", Password: password}
	f := newFleet(t, plan{server: server, members: 3, config: c, prepare: func(r *replica) { r.store.Logger = log.logger() }})
	f.steady()
	for _, r := range f.members {
		for _, cost := range []int{1, 2} {
			was := shaping.Departure{Request: throttle.Request{N: cost}, Grant: throttle.Grant{At: r.queue.Now()}}
			r.queue.Settle(was, throttle.Request{N: 3 - cost})
		}
		r.queue.Pause(moment / 10)
		r.queue.Reconcile(throttle.Fact{Resumed: true})
	}
	f.pass(moment)
	if err := f.members[0].queue.Tune(throttle.SlidingLog(2*rate, time.Second), throttle.TokenBucket(rate, time.Second, burst)); err != nil {
		t.Error(err)
	}
	f.pass(moment)
	for _, r := range f.members {
		flights, err := r.store.Flights(r.Lane, 1)
		if err != nil {
			t.Fatal(err)
		}
		flights.Await(1)
		await(t, "a slot", flights.Board)
		flights.Land()
		flights.Await(0) // which others wait for
		if s := flights.State(); s.Failures > 0 {
			t.Errorf("%d of %d calls for slots failed: %s", s.Failures, s.Calls, s.Cause)
		}
	}
	f.members[0].queue.Pause(2 * patience)
	await(t, "the news of a pause", func() bool { return f.members[1].queue.State().Paused != 0 })
	for i, s := range f.states() {
		if s.Failures > 0 || s.Lost {
			t.Errorf("replica %d: %d calls of %d failed: %s", i, s.Failures, s.Calls, s.Cause)
		}
	}
	f.stop()
	if refused := aclLog(t, server); len(refused) > 0 {
		t.Errorf("Redis refused %v", refused)
	}
	for line := range strings.Lines(log.String()) {
		switch {
		case !strings.Contains(line, "level=WARN"):
		case strings.Contains(line, "stricter limits"): // one replica has others
		case strings.Contains(line, "most permits are void"): // the machine stood still
		default:
			t.Errorf("logged: %s", line)
		}
	}
}

// Without one of the grants the store still works, or it logs why not and follows the policy for a
// loss. It then asks at most once in each interval. The first refused call may have lost some of
// the state.
func TestR16WithoutAGrantNothingIsAskedInALoop(t *testing.T) {
	t.Parallel()
	for _, word := range strings.Fields(distributed.MinimumACL) {
		name, isCommand := strings.CutPrefix(word, "+")
		if !isCommand {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testWithout(t, name)
		})
	}
}

func testWithout(t *testing.T, command string) {
	t.Helper()
	server := redistest.Start(t)
	grant(t, server, append(strings.Fields(distributed.MinimumACL), "-"+command)...)
	var log diary
	c := patiently(throttle.TokenBucket(5*rate, time.Second, burst), throttle.SlidingLog(rate/4, time.Second/4))
	c.Redis = place{User: "weir", Password: password}
	f := newFleet(t, plan{server: server, members: 2, config: c, prepare: func(r *replica) { r.store.Logger = log.logger() }})
	await(t, "the first calls", func() bool { return f.states()[0].Calls > 0 && f.states()[1].Calls > 0 })
	from, began, before := now(), time.Now(), f.states()
	f.pass(2 * moment)
	took := time.Since(began)
	for i, s := range f.states() {
		t.Logf("%d calls, %d failed, lost %v %q", s.Calls, s.Failures, s.Lost, s.Cause)
		failed := s.Failures - before[i].Failures
		if most := 1 + uint64(took/distributed.DefaultBreakFor); failed > most {
			t.Errorf("%d failed calls in %v, want at most %d", failed, took, most)
		}
		if s.Lost && (s.Cause != "noperm" || !strings.Contains(log.String(), "cause=noperm")) {
			t.Errorf("the cause is %q, and the log is:\n%s", s.Cause, log.String())
		}
	}
	f.judge(spell{from: from, to: now(), more: rate / 4})
	if strings.Contains(log.String(), password) {
		t.Errorf("the password is logged:\n%s", log.String())
	}
}

// A user of a Cluster needs one more grant. Then nothing is refused, not even the commands that the
// client sends by itself.
func TestR16TheMinimumACLIsEnoughInACluster(t *testing.T) {
	t.Parallel()
	const nodes = 3
	c := redistest.StartCluster(t, nodes)
	for i := range nodes {
		grant(t, c.Server(i), append(strings.Fields(distributed.MinimumACL), "+cluster|slots")...)
	}
	given := place{Addrs: c.Addrs(), Cluster: true, User: "weir", Password: password}.client()
	defer given.Close()
	store := distributed.New(given, "fleet")
	store.Deadline, store.MaxDeadline = patience, patience
	var log diary
	store.Logger = log.logger()
	defer store.Close()
	for i := range 10 {
		l, err := store.Limiter("lane"+strconv.Itoa(i), throttle.TokenBucket(1000, time.Second, 1))
		if err != nil {
			t.Fatal(err)
		}
		q := shaping.NewQueue(l)
		for range 3 {
			if err := q.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if s := l.State(q.Now()).Store; s.Failures+s.Local > 0 {
			t.Errorf("lane %d: %d calls of %d failed: %s", i, s.Failures, s.Calls, s.Cause)
		}
	}
	for i := range nodes {
		if refused := aclLog(t, c.Server(i)); len(refused) > 0 {
			t.Errorf("node %d refused %v", i, refused)
		}
	}
	if log.String() != "" {
		t.Errorf("logged:\n%s", log.String())
	}
}
