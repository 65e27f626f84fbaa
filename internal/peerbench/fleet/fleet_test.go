package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/needs"
)

func TestMain(m *testing.M) {
	if spec, child := os.LookupEnv(taskVariable); child {
		exit(beReplica(spec))
	}
	os.Exit(m.Run())
}

func TestOptions(t *testing.T) {
	o, err := parse(strings.Fields("-line -runs 5 -for 2s -who weir,redis_rate -demand skewed -goroutines 1,64"))
	if err != nil {
		t.Fatal(err)
	}
	if !o.line || o.decision || o.crowd || o.runs != 5 || o.duration(time.Minute) != 2*time.Second || o.burst != 18 {
		t.Errorf("options are %+v", o)
	}
	if !slices.Equal(o.demands, []string{"skewed"}) || !slices.Equal(o.goroutines, []int{1, 64}) {
		t.Errorf("demands %q, goroutines %d", o.demands, o.goroutines)
	}
	if got, want := o.among([]string{xtime, redisRate, weirs}, learning), []string{redisRate, weirs}; !slices.Equal(got, want) {
		t.Errorf("contenders %q, want %q", got, want)
	}
	o.lacking = []string{redisRate}
	if got, want := o.among([]string{xtime, redisRate, weirs}), []string{weirs}; !slices.Equal(got, want) {
		t.Errorf("contenders that can run %q, want %q", got, want)
	}
	if o, err := parse(nil); err != nil || len(o.among([]string{weirs}, learning)) != 1 || o.duration(time.Minute) != time.Minute {
		t.Errorf("without arguments: %+v, %v", o, err)
	}
	for _, line := range []string{"-who nobody", "-demand odd", "-goroutines 0", "-runs 0", "-n 0", "stray"} {
		if _, err := parse(strings.Fields(line)); err == nil {
			t.Errorf("parse(%q) has no error", line)
		}
	}
}

func TestSheetEndsWithMedians(t *testing.T) {
	const want = `title

| | wall s | 429s |
|---|---|---|
| a (run 1) | 1.00 | 9 |
| b (run 1) | 5.00 |  |
| a (run 2) | 3.00 | 1 |
| a (run 3) | 2.25 | 5 |

| | wall s | 429s |
|---|---|---|
| a | 2.25 | 5 |
| b | 5.00 |  |

`
	var out strings.Builder
	s := newSheet(&out, "title", column{"wall s", 2}, column{"429s", 0})
	s.add("a", 1, 9)
	s.add("b", 5, none)
	s.add("a", 3, 1)
	s.add("a", 2.25, 5)
	s.close()
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		calls  int
		demand string
		want   []int
	}{
		{2000, "even", []int{250, 250, 250, 250, 250, 250, 250, 250}},
		{2000, "skewed", []int{1600, 58, 57, 57, 57, 57, 57, 57}},
		{10, "even", []int{2, 2, 1, 1, 1, 1, 1, 1}},
	} {
		if got := shares(c.calls, 8, c.demand); !slices.Equal(got, c.want) {
			t.Errorf("shares(%d, 8, %s) = %d, want %d", c.calls, c.demand, got, c.want)
		}
	}
}

func TestEffortOfRedis(t *testing.T) {
	const stats = "# Commandstats\r\ncmdstat_evalsha:calls=7,usec=3\r\ncmdstat_time:calls=7,usec=1\r\ncmdstat_hello:calls=2,usec=1\r\n" +
		"cmdstat_client|setinfo:calls=4,usec=1\r\ncmdstat_info:calls=3,usec=9\r\n"
	before := effort{calls: map[string]int{"evalsha": 2}, cpu: time.Second}
	did := effort{commandCalls(stats), cpuTime("used_cpu_sys:1.000000\r\nused_cpu_user:0.500000\r\nused_cpu_sys_children:9.0\r\n")}.since(before)
	if did.scripts() != 5 || did.commands() != 12 || did.setup() != 6 || did.cpu != 500*time.Millisecond {
		t.Errorf("%v scripts, %v commands, %v setup, %v", did.scripts(), did.commands(), did.setup(), did.cpu)
	}
}

func TestCountOnlyWhatIsMeasured(t *testing.T) {
	g := count([]report{{Spans: [][]span{{{8, 1}, {8, 2}, {15, 4}}, {{19, 1}}}, Failed: 2}}, 10, 20)
	if g.all != 4 || g.failed != 2 || len(g.within) != 2 || g.least != 0 || g.most != 2 {
		t.Errorf("count = %+v", g)
	}
}

func TestFleetDrains(t *testing.T) {
	needs.Program(t, "redis-server")
	server, err := startServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.end()
	o, err := parse([]string{"-n", "30"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{options: o, server: server, out: t.Output()}
	for _, who := range []string{xtime, redisRate, pipelined, weirs} {
		d, err := b.drainOnce(t.Context(), who, []int{20, 10}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, rep := range d.reports {
			if got := len(rep.Spans[0]); got != d.shares[i] || rep.Failed > 0 {
				t.Errorf("%s, replica %d: %d calls, %d of them failed; want %d and none", who, i, got, rep.Failed, d.shares[i])
			}
		}
		if scripts := d.effort.scripts(); (scripts > 0) != (who != xtime) {
			t.Errorf("%s: %v calls of scripts", who, scripts)
		}
	}
}
