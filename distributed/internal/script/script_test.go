package script

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// scriptSum is the sum of the text that Redis keeps. A changed script works beside this one, and on
// its state: change it on purpose.
const scriptSum = "7f0453bec94b32424eb9a2745faaddaa75d3e34f96b277eede1e1b2477d87a62"

// slotsScriptSum is the sum of the script that shares slots.
const slotsScriptSum = "b8c7aaf20798cccbb15faa8ad3ff83fd947ebe88478df720f1241bb50cb60c41"

func TestScriptIsTheOneThatWasMeant(t *testing.T) {
	sum := sha256.Sum256([]byte(scriptSource))
	if got := hex.EncodeToString(sum[:]); got != scriptSum {
		t.Errorf("the script's sum is %s, want %s", got, scriptSum)
	}
	slotsSum := sha256.Sum256([]byte(slotsSource))
	if got := hex.EncodeToString(slotsSum[:]); got != slotsScriptSum {
		t.Errorf("the sum of the script of slots is %s, want %s", got, slotsScriptSum)
	}
	if strings.Contains(scriptSource, "%!") || strings.Contains(scriptSource, "\r") || strings.Contains(scriptSource, "--") {
		t.Error("the script has a comment, a carriage return or a verb that was not filled")
	}
}

// Every file is part of a script.
func TestScriptHasAllFiles(t *testing.T) {
	joined := []string{"slots.lua"} // a script of its own
	for _, layer := range layers {
		for _, m := range layer {
			for _, file := range m.files {
				joined = append(joined, file+".lua")
			}
		}
	}
	files, err := sources.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(joined, f.Name()) {
			t.Errorf("%s is not in the script", f.Name())
		}
		source, err := sources.ReadFile("lua/" + f.Name())
		if err != nil || !strings.HasPrefix(string(source), "-- ") {
			t.Errorf("%s does not begin with what it holds", f.Name())
		}
	}
	if len(joined) != len(files) {
		t.Errorf("the script joins %d files, the directory has %d", len(joined), len(files))
	}
}

// The commands that the users of the store must be allowed.
func TestScriptUsesTheCommandsItSays(t *testing.T) {
	server := redistest.Start(t)
	b := newBenchAt(t, server.Addr())
	b.used()
	for seed := range int64(20) {
		h := newTwin(seed)
		synctest.Test(t, func(*testing.T) { h.live() })
		h.replay(b.limiter(h.begun...))
	}
	c := b.caller(b.lane(), throttle.SlidingLog(1, time.Hour))
	got := b.call(c.lane, &Request{Tolerance: asTolerance, Limits: c.limits, Groups: c.line(1), Channel: "news", Lane: "lane", Reports: []Report{{Kind: ReportPause, Span: 1}}})
	if time.Since(time.UnixMicro(got.Now)).Abs() > time.Minute {
		t.Errorf("the script's clock is %v", time.UnixMicro(got.Now))
	}
	allowed := []string{
		"eval", "evalsha", "time", "hmget", "hset", "pexpire", "del", "publish", "llen", "lrange", "ltrim", "lset", "rpush",
		"hget", "hdel", "exists", "rename", // of a tune of the test
		"hello", "client|setinfo", "client|maint_notifications", "info", "ping", // of clients
		"client", // the same, as Redis 6.2 counts
	}
	for command := range server.Commands() {
		if !slices.Contains(allowed, command) {
			t.Errorf("the script uses %s", command)
		}
	}
}

// A server of another make, with another Lua, behaves equally.
func TestScriptDoesTheSameOnMiniredis(t *testing.T) {
	b := newBenchAt(t, miniredis.RunT(t).Addr())
	for seed := range int64(min(60, lives())) {
		h := newTwin(seed)
		synctest.Test(t, func(*testing.T) { h.live() })
		if differs := h.replay(b.limiter(h.begun...)); differs != "" {
			t.Fatalf("history %d of %v: %s\n%s", seed, h.begun, differs, strings.Join(h.trace, "\n"))
		}
	}
}

// Published messages have the lane, the epoch and the rest of the pause.
func TestPauseIsPublished(t *testing.T) {
	b := newBench(t)
	sub := b.client.Subscribe(t.Context(), "news")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := b.caller(b.lane(), throttle.TokenBucket(1, time.Second, 1))
	for _, span := range []int64{2 * second, second, 3 * second} { // the second changes nothing
		b.call(c.lane, &Request{now: dawn, Tolerance: asTolerance, Limits: c.limits, Channel: "news", Lane: "lane", Reports: []Report{{Kind: ReportPause, Span: span}}})
	}
	for _, want := range []string{"lane 1 2000000", "lane 2 3000000"} {
		got, err := sub.ReceiveMessage(t.Context())
		if err != nil || got.Payload != want {
			t.Fatalf("message %v, %v, want %q", got, err, want)
		}
	}
}

// An error of the server keeps the word by which callers identify it.
func TestScriptHandsOnErrorsOfTheServer(t *testing.T) {
	server := redistest.Start(t)
	b := newBenchAt(t, server.Addr())
	for _, l := range []throttle.Limit{throttle.TokenBucket(1, time.Second, 1), throttle.SlidingLog(1, time.Second)} {
		c := b.caller(b.lane(), l)
		c.run(dawn, 1)
		server.Do("CONFIG", "SET", "maxmemory", "1")
		r := Request{now: dawn, Tolerance: asTolerance, Limits: c.limits, Groups: c.line(1)}
		_, err := script.EvalSha(t.Context(), b.client, r.Keys(b.lane()), r.Args(nil)...).Result()
		if !strings.Contains(fmt.Sprint(err), "OOM") {
			t.Errorf("limit %v: without memory the script says %v", l, err)
		}
		server.Do("CONFIG", "SET", "maxmemory", "0")
		c.run(dawn, 1)
	}
}

// spent returns the processor time that the server has used, whatever else runs.
func spent(server *redistest.Server) (total time.Duration) {
	stats, _ := server.Do("INFO", "cpu")
	text, _ := stats.(string)
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, rest, _ := strings.Cut(text, name)
		number, _, _ := strings.Cut(rest, "\r")
		seconds, _ := strconv.ParseFloat(number, 64)
		total += time.Duration(seconds * float64(time.Second))
	}
	return total
}

// usecPerCall returns what a call of the script cost the server.
func usecPerCall(server *redistest.Server) float64 {
	stats, _ := server.Do("INFO", "commandstats")
	text, _ := stats.(string)
	_, rest, _ := strings.Cut(text, "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec_per_call=")
	number, _, _ := strings.Cut(rest, ",")
	usec, _ := strconv.ParseFloat(number, 64)
	return usec
}
