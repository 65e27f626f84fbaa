package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A closing vendor refuses its first call for ten minutes, and serves all others.
type closing struct{ calls atomic.Int64 }

func (c *closing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req, ProtoMajor: 1, ProtoMinor: 1}
	if c.calls.Add(1) == 1 {
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", "600")
	}
	return resp, nil
}

// pausedLane makes a vendor refuse a replica's call for ten minutes, and returns a channel that
// reports when it was served.
func pausedLane(t *testing.T, addr string) (served chan error) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	store := distributed.New(rdb, "company")
	store.Logger = slog.New(slog.DiscardHandler)
	store.FirstDeadline, store.Deadline, store.MaxDeadline = 5*time.Second, 5*time.Second, 5*time.Second
	transport := &weir.Transport{
		Base: new(closing), Store: store, MaxPause: time.Hour, Logger: store.Logger,
		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)},
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); transport.Close(); store.Close(); rdb.Close() })
	served = make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://vendor.test/", http.NoBody)
		if err == nil {
			_, err = transport.RoundTrip(req)
		}
		served <- err
	}()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if lanes, _ := distributed.Lanes(ctx, rdb, "company"); len(lanes) == 1 && lanes[0].Paused > time.Minute {
			return served
		}
	}
	t.Fatal("the lane was not paused in 30 s")
	return nil
}

// An operator sees a paused lane, and ends its pause: the waiting call is served.
func TestOperatorEndsAPause(t *testing.T) {
	for _, verb := range []string{"resume", "forget"} {
		t.Run(verb, func(t *testing.T) {
			server := redistest.Start(t)
			served := pausedLane(t, server.Addr())
			redis := func(in string, args ...string) (int, string, string) {
				return runs(t, in, append([]string{"redis", "-addr", server.Addr(), "-namespace", "company"}, args...)...)
			}
			code, out, errs := redis("", "lanes")
			if fields := strings.Fields(out); code != 0 || !strings.Contains(out, "  100/s burst 10  ") || !strings.Contains(out, "vendor.test  1") || len(fields) < 10 {
				t.Errorf("lanes = %d, %s%s, want the lane with its limit and its replica", code, out, errs)
			}
			for _, no := range []string{"n\n", "", "yess\n"} {
				if code, _, errs := redis(no, verb, "vendor.test"); code != 1 || !strings.Contains(errs, "not confirmed, nothing changed") {
					t.Errorf("%s, answered %q = %d, %s, want 1 and that nothing changed", verb, no, code, errs)
				}
			}
			if code, _, errs := redis("y\n", verb, "else.test"); code != 1 || !strings.Contains(errs, `no lane "else.test" in namespace "company"`) {
				t.Errorf("%s of no lane = %d, %s, want 1 and its name", verb, code, errs)
			}
			select {
			case err := <-served:
				t.Fatalf("the call was served before the pause was ended: %v", err)
			default:
			}
			if code, out, errs := redis("Y\n", verb, "vendor.test"); code != 0 || !strings.Contains(out, "[y/N] done") {
				t.Errorf("%s = %d, %s%s, want 0 and that it is done", verb, code, out, errs)
			}
			select {
			case err := <-served:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the call that waited was not served within 10 s")
			}
			if code, out, errs := redis("", "-yes", verb, "vendor.test"); code != 0 || strings.Contains(out, "[y/N]") {
				t.Errorf("%s -yes = %d, %s%s, want 0 and no question", verb, code, out, errs)
			}
		})
	}
}

// An operator names a lane by its key as it is printed. The error names what Redis did not allow.
func TestOperatorWithoutGrants(t *testing.T) {
	server := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	store := distributed.New(rdb, "company")
	defer store.Close()
	limiter, err := store.Limiter(`a "b"`, throttle.TokenBucket(100, time.Second, 10))
	if err == nil {
		err = shaping.NewQueue(limiter).Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"redis", "-addr", server.Addr(), "-namespace", "company", "-yes", "forget", `"a \"b\""`}
	if code, out, errs := runs(t, "", args...); code != 0 || !strings.Contains(out, "done") {
		t.Errorf("forget = %d, %s%s, want that it is done", code, out, errs)
	}
	if _, err := server.Do("ACL", "SETUSER", "default", "-evalsha", "-eval"); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runs(t, "", args...); code != 1 || !strings.Contains(errs, "it may not have been done: Redis fails: noperm") {
		t.Errorf("forget without grants = %d, %s%s, want 1 and the cause", code, out, errs)
	}
}

// A server that never answers is named, with the time given to it.
func TestSilentRedisIsNamed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	addr := silent.Addr().String()
	code, out, errs := runs(t, "", "redis", "-namespace", "company", "-addr", addr, "-timeout", "200ms", "lanes")
	if want := "weir redis: asking Redis at " + addr + ": no answer in 200ms"; code != 1 || out != "" || !strings.HasPrefix(errs, want) {
		t.Errorf("lanes = %d, %q, %q, want 1 and %q", code, out, errs, want)
	}
}

// A lane that is not found is named, also beside the error of another.
func TestOperatorNamesAWrongLane(t *testing.T) {
	server := redistest.Start(t)
	if _, err := server.Do("SET", "weir:1:{company/broken}", "text"); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runs(t, "", "redis", "-addr", server.Addr(), "-namespace", "company", "resume", "absent")
	if code != 1 || out != "" || !strings.Contains(errs, `resume "absent": lane not found: asking Redis at `) || !strings.Contains(errs, `lane "broken": WRONGTYPE`) {
		t.Errorf("resume = %d, %q, %s, want 1 and both lanes", code, out, errs)
	}
}

// The end of a long key is a hash. Its lane is named by the key that is printed.
func TestLongKeys(t *testing.T) {
	server := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	for name, tt := range map[string]struct {
		key  string
		code int
		want string
	}{
		"shortest that is whole": {strings.Repeat("a", 170), 0, "done"},
		"longest that is whole":  {strings.Repeat("a", 200), 0, "done"},
		"hashed":                 {strings.Repeat("a", 201), 0, "done"},
		"of escaped bytes":       {strings.Repeat("ab ", 100), 0, "done"},
		"cut in a letter":        {strings.Repeat("a", 166) + strings.Repeat("é", 50), 0, "done"},
		"cut in an escape":       {strings.Repeat("a", 166) + strings.Repeat("/", 50), 1, "its key is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := strings.ReplaceAll(name, " ", "-") // the lane of another row may still be paused
			store := distributed.New(rdb, namespace)
			defer store.Close()
			limiter, err := store.Limiter(tt.key, throttle.TokenBucket(100, time.Second, 10))
			if err == nil {
				q := shaping.NewQueue(limiter)
				err = q.Wait(t.Context())
				q.Pause(10 * time.Minute)
			}
			if err != nil {
				t.Fatal(err)
			}
			var lane distributed.Lane
			for end := time.Now().Add(30 * time.Second); lane.Paused == 0 && time.Now().Before(end); {
				lanes, _ := distributed.Lanes(t.Context(), rdb, namespace)
				for _, l := range lanes {
					if l.Paused > time.Minute {
						lane = l
					}
				}
			}
			code, out, errs := runs(t, "", "redis", "-addr", server.Addr(), "-namespace", namespace, "-timeout", "3s", "-yes", "resume", readableKey(lane.Key))
			if code != tt.code || !strings.Contains(out+errs, tt.want) {
				t.Errorf("resume = %d, %s%s, want %d and %q", code, out, errs, tt.code, tt.want)
			}
		})
	}
}

func TestRedisPassword(t *testing.T) {
	server := redistest.Start(t, "--requirepass", " secret ")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(" secret \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"redis", "-addr", server.Addr(), "-namespace", "company", "lanes"}
	if code, out, errs := runs(t, "", args...); code != 1 || out != "" || !strings.Contains(errs, "asking Redis at "+server.Addr()+": NOAUTH") {
		t.Errorf("lanes without a password = %d, %q, %s, want 1 and NOAUTH alone", code, out, errs)
	}
	if code, out, errs := runs(t, "", append(args, "-password-file", file)...); code != 0 || out != "no lanes\n" {
		t.Errorf("lanes with a password = %d, %q, %s, want no lanes", code, out, errs)
	}
}

func TestRedisExitCodes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-h"}, 0, "forget makes all replicas forget"},
		{[]string{"lanes"}, 2, "no -namespace"},
		{[]string{"-namespace", "a"}, 2, `"" is none of lanes, resume and forget`},
		{[]string{"-namespace", "a", "flush"}, 2, `"flush" is none of`},
		{[]string{"-namespace", "a", "resume"}, 2, "resume of 0 keys"},
		{[]string{"-namespace", "a", "lanes", "b"}, 2, `lanes takes no key: ["b"]`},
		{[]string{"-namespace", "a", "-addr", "a:1,b:1", "lanes"}, 2, "2 addresses without -cluster"},
		{[]string{"-namespace", "a", "-addr", "", "lanes"}, 2, `-addr "": missing port in address`},
		{[]string{"-namespace", "a", "-addr", "a:1,b", "-cluster", "lanes"}, 2, `-addr "a:1,b": address b: missing port in address`},
		{[]string{"-namespace", "a", "-db", "-1", "lanes"}, 2, "-db -1 is negative"},
		{[]string{"-namespace", "a", "-db", "1", "-cluster", "lanes"}, 2, "-db 1 with -cluster"},
		{[]string{"-namespace", "a", "-timeout", "0", "lanes"}, 2, "-timeout 0s is not positive"},
		{[]string{"-namespace", "a", "-password-file", "no-such-file", "lanes"}, 1, "no-such-file"},
		{[]string{"-namespace", "a", "-addr", "127.0.0.1:1", "-timeout", "2s", "lanes"}, 1, "127.0.0.1:1"},
	} {
		code, out, errs := runs(t, "", append([]string{"redis"}, tt.args...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) {
			t.Errorf("weir redis %q = %d, %q, %q, want %d and %q", tt.args, code, out, errs, tt.code, tt.want)
		}
	}
}
