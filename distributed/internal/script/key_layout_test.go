package script

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/throttle"
)

var updateLayout = flag.Bool("layout", false, "write testdata/layout.txt anew")

// The scripts' output is frozen as long as the layout keeps its name: versions that run beside each
// other in a rolling deploy then share one quota. If an intended change breaks this test, and a
// version with that layout was released, rename the layout. Then
//
//	go test ./distributed/internal/script -run TestTheLayoutIsFrozen -layout
//
// writes the file anew.
func TestTheLayoutIsFrozen(t *testing.T) {
	const path = "testdata/layout.txt"
	got := writtenBy(t)
	if *updateLayout {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			t.Fatalf("layout %q: what the scripts write has changed in line %d: see the comment of this test\nfrozen:  %s\nwritten: %s",
				Layout, i+1, strings.Join(was[i:min(i+3, len(was))], "\n         "), strings.Join(is[i:min(i+3, len(is))], "\n         "))
		}
	}
}

// writtenBy returns all that the scripts have written after a fixed series of calls: names of keys,
// types, fields with their values, and messages.
func writtenBy(t *testing.T) string {
	b := newBench(t)
	channel := ChannelName("acc{ount")
	sub := b.client.Subscribe(t.Context(), channel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	day := throttle.FixedWindow(1000, 24*time.Hour).Aligned(throttle.AlignDay("UTC"))
	named := throttle.TokenBucket(90_000, time.Minute, 5000)
	named.Unit, named.Name = "tokens", "per minute"
	for i, limits := range [][]throttle.Limit{
		{throttle.TokenBucket(10, time.Second, 5)},
		{throttle.GCRA(7, time.Minute, 3)}, // slow: charges are remembered
		{throttle.LeakyBucket(3, time.Second)},
		{throttle.FixedWindow(10, time.Minute)},
		{day},
		{throttle.SlidingLog(10, time.Minute)},
		{throttle.SlidingWindow(10, time.Minute)},
		{throttle.TokenBucket(10, time.Second, 5), named, throttle.SlidingLog(100, time.Minute), throttle.FixedWindow(100, time.Hour)},
	} {
		for _, what := range []string{"grants", "reports", "held", "pause", "tune"} {
			c := b.caller(laneKey("acc{ount", fmt.Sprint("set ", i, " ", what)), limits...)
			c.run(dawn, 4)
			one := make([]int64, len(limits))
			for j := range one {
				one[j] = 1
			}
			switch what {
			case "reports":
				three := slices.Repeat([]int64{3}, len(limits))
				c.ask(dawn+second, c.line(1), c.refund(dawn, one...), Report{Kind: ReportSettle, At: dawn, Costs: one, Actual: three}, Report{Kind: ReportLocal, Costs: three})
			case "held", "pause":
				for j, r := range []Report{{Kind: ReportPause, Span: 2 * second}, {Kind: ReportResume}} {
					if j == 1 && what == "held" {
						break
					}
					c.write(&Request{now: dawn + int64(1+j)*second, Channel: channel, Lane: "lane", Reports: []Report{r}})
				}
			case "tune":
				other := b.caller(c.lane, throttle.TokenBucket(1, time.Second, 2))
				other.ask(dawn+second, other.line(1)) // claims another limit
			}
		}
	}
	learner := b.caller(laneKey("acc{ount", "learned"), throttle.TokenBucket(10, time.Second, 5))
	for i, word := range []string{"one", "two"} {
		lesson := NewUpdate(store.Pacing{Interval: 20 * time.Millisecond, TTL: time.Minute})
		lesson.Entry.Data, lesson.Snapshot = []byte(word), []byte("snapshot")
		learner.write(&Request{now: dawn + int64(i)*second, Update: lesson, Groups: learner.line(1)})
	}
	for i, id := range []string{"a", "b"} {
		slotsCall{id: id, number: 1, most: 3, wants: 5, has: i}.run(t, b.client, laneKey("acc{ount", "lane")+":flights")
	}
	text := "layout " + Layout + "\n" + b.dump()
	for range 3 * 8 { // of sixteen pauses, and the ends of eight
		got, err := sub.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text += got.Channel + ": " + got.Payload + "\n"
	}
	return text
}

// write runs the script once, whatever it answers.
func (c *caller) write(r *Request) {
	r.Tolerance, r.Horizon, r.Most, r.Seen, r.Limits = asTolerance, time.Second, 100, c.seen, c.limits
	if err := script.Run(context.Background(), c.bench.client, r.Keys(c.lane), r.Args(nil)...).Err(); err != nil {
		c.bench.Fatal(err)
	}
}

// clockTime is an instant by the clock of Redis, which the slots' script reads itself.
var clockTime = regexp.MustCompile(`\b1[0-9]{15}\b`)

// dump returns all keys with their content.
func (b *bench) dump() string {
	var text strings.Builder
	keys, err := b.client.Keys(context.Background(), "*").Result()
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if kind := b.do("TYPE", key); kind == "list" {
			fmt.Fprintf(&text, "%s: %q\n", key, b.do("LRANGE", key, 0, -1))
			continue
		}
		fields := b.client.HGetAll(context.Background(), key).Val()
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			value := fields[field]
			if strings.HasSuffix(key, ":flights") {
				value = clockTime.ReplaceAllString(value, "T")
			}
			fmt.Fprintf(&text, "%s: %s: %q\n", key, field, value)
		}
	}
	return text.String()
}
