package redistest_test

import (
	"errors"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/redistest"
)

// do fails the test if the command fails.
func do(t *testing.T, s *redistest.Server, args ...string) any {
	t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		t.Fatalf("Do(%q): %v", args, err)
	}
	return reply
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %#v, want %#v", what, got, want)
	}
}

func refused(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err != nil
}

func TestServerReplies(t *testing.T) {
	s := redistest.Start(t)
	want(t, "PING", do(t, s, "PING"), "PONG")
	want(t, "INCR", do(t, s, "INCR", "n"), int64(1))
	want(t, "GET", do(t, s, "GET", "n"), "1")
	want(t, "GET of nothing", do(t, s, "GET", "nothing"), nil)
	want(t, "EVAL", do(t, s, "EVAL", "return {1, 'two', {}, {err = 'THREE'}}", "0"),
		[]any{int64(1), "two", []any{}, redistest.Error("THREE")})
	_, err := s.Do("HGET", "n", "field")
	if refusal := redistest.Error(""); !errors.As(err, &refusal) || !strings.HasPrefix(err.Error(), "WRONGTYPE ") {
		t.Errorf("HGET of a string: %v, want WRONGTYPE", err)
	}
}

func TestServerKeepsNothing(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "9mb")
	do(t, s, "SET", "key", "value")
	addr, pid := s.Addr(), s.Pid()
	s.Restart()
	want(t, "GET", do(t, s, "GET", "key"), nil)
	want(t, "Addr()", s.Addr(), addr)
	want(t, "maxmemory", do(t, s, "CONFIG", "GET", "maxmemory"), []any{"maxmemory", "9437184"})
	if s.Pid() == pid {
		t.Errorf("Pid() = %d as before", pid)
	}
	s.Restart("--maxmemory", "0")
	want(t, "maxmemory", do(t, s, "CONFIG", "GET", "maxmemory"), []any{"maxmemory", "0"})
}

func TestServerWithPasswordAnswers(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "secret")
	_, err := s.Do("PING")
	if err == nil || !strings.HasPrefix(err.Error(), "NOAUTH ") {
		t.Errorf("PING: %v, want NOAUTH", err)
	}
	do(t, s, "AUTH", "secret")
	do(t, s, "PING")
}

func TestServerRestartsWhileLoading(t *testing.T) {
	s := redistest.Start(t)
	do(t, s, "DEBUG", "POPULATE", "2000")
	do(t, s, "SAVE")
	s.Restart("--save", "60 1", "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
	_, err := s.Do("GET", "key:1")
	if err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
		t.Errorf("GET: %v, want LOADING", err)
	}
}

func TestKilledServerIsGone(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	s.Kill()
	if !refused(s.Addr()) {
		t.Error("a killed server accepts")
	}
	if _, err := s.Do("PING"); err == nil {
		t.Error("a killed server answers")
	}
	if _, err := os.Stat(s.Dir()); err != nil {
		t.Error(err)
	}
}

func TestStoppedServerAnswersLater(t *testing.T) {
	s := redistest.Start(t)
	do(t, s, "PING")
	s.Stop()
	answer := make(chan error, 1)
	go func() {
		_, err := s.Do("INCR", "n")
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Errorf("a stopped server answers (%v)", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Continue()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	want(t, "GET", do(t, s, "GET", "n"), "1")
}

func TestDoOutlivesItsConnection(t *testing.T) {
	s := redistest.Start(t)
	do(t, s, "CONFIG", "SET", "maxclients", "1")
	do(t, s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
	want(t, "INCR", do(t, s, "INCR", "n"), int64(1))
}

func TestServerCounts(t *testing.T) {
	s := redistest.Start(t)
	do(t, s, "CONFIG", "RESETSTAT")
	for range 3 {
		do(t, s, "EVAL", "redis.call('INCR', KEYS[1])", "1", "n")
	}
	want(t, "Commands()", s.Commands(), map[string]int{"eval": 3, "incr": 3, "config|resetstat": 1})
	before := s.CPU()
	do(t, s, "EVAL", "for i = 1, 1e6 do end", "0")
	if s.CPU() <= before {
		t.Errorf("CPU() = %v after a busy script, want more than %v", s.CPU(), before)
	}
}

func TestServersDoNotShare(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	do(t, a, "SET", "key", "value")
	want(t, "GET", do(t, b, "GET", "key"), nil)
}
