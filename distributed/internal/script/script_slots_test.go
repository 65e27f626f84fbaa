package script

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
)

// A slotsCall is one call of the script that shares slots.
type slotsCall struct {
	id          string
	number      int64
	most        int
	has, wants  int
	lease, come time.Duration // zero: a minute, a second
	learned     int           // most of all replicas
	at          int64         // when it was learned
}

func (c slotsCall) run(tb testing.TB, client *redis.Client, key string) LeaseReply {
	tb.Helper()
	if c.lease == 0 {
		c.lease, c.come = time.Minute, time.Second
	}
	v, err := slotsScript.Run(context.Background(), client, []string{key},
		c.id, c.number, c.most, Micros(c.lease), c.has, c.wants, Micros(c.come), "", "", c.learned, c.at).Result()
	if err != nil {
		tb.Fatal(err)
	}
	got, err := DecodeLease(v)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// seed leases slots for an hour to replicas that have called once, with what each has and wants.
func seed(tb testing.TB, client *redis.Client, key string, replicas, most int, of func(i int) (has, wants int)) {
	tb.Helper()
	now, fields := time.Now(), []any(nil)
	for i := range replicas {
		has, wants := of(i)
		fields = append(fields, fmt.Sprint("replica", i), fmt.Sprintf("1 %d %d %d %d %d %d 0 %d", most, now.Add(time.Hour).UnixMicro(), has, wants, most, now.UnixMicro()+int64(i), time.Hour.Microseconds()))
	}
	if err := client.HSet(context.Background(), key, fields...).Err(); err != nil {
		tb.Fatal(err)
	}
}

func slotsClient(tb testing.TB) (*redistest.Server, *redis.Client) {
	server := redistest.Start(tb)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	tb.Cleanup(func() { client.Close() })
	return server, client
}

// A client that is not the store's own may resend a call whose reply was lost: the reply is the
// same, also in a turn.
func TestSlotsScriptAnswersARepeatedCallAlike(t *testing.T) {
	_, client := slotsClient(t)
	one := slotsCall{id: "a", number: 1, most: 3, wants: 5}
	other := slotsCall{id: "b", number: 1, most: 3, wants: 5}
	for step, c := range []slotsCall{one, other, {id: "a", number: 2, most: 3, has: 2, wants: 5}, {id: "b", number: 2, most: 3, wants: 5}} {
		first := c.run(t, client, "weir:1:{x/repeated}:flights")
		again := c.run(t, client, "weir:1:{x/repeated}:flights")
		if first.Ends = again.Ends; again != first {
			t.Errorf("step %d: the answer is %+v, repeated %+v", step, first, again)
		}
	}
	late := one
	if got := late.run(t, client, "weir:1:{x/repeated}:flights"); got != (LeaseReply{}) {
		t.Errorf("an earlier call is answered %+v, want nothing", got)
	}
	if got := (slotsCall{id: "b", number: 3, most: 3, has: 1, wants: 5}).run(t, client, "weir:1:{x/repeated}:flights"); got.Has != 1 || got.Fleet != 3 {
		t.Errorf("the next call is answered %+v, want one slot of three", got)
	}
}

// What replicas learned last is in force, whoever calls.
func TestSlotsScriptBoundsByWhatWasLearnedLast(t *testing.T) {
	_, client := slotsClient(t)
	const key = "weir:1:{x/learned}:flights"
	for i, c := range []struct {
		id      string
		has     int
		learned int
		at      int64
		garbage bool // in place of what was learned
		want    int  // slots of the caller, which wants nine
	}{
		{id: "a", learned: 4, at: 10, want: 4},
		{id: "b", learned: 9, at: 5, want: 0}, // it knows less
		{id: "b", learned: 9, at: 20, want: 4},
		{id: "a", has: 2, learned: 4, at: 10, want: 5},
		{id: "a", has: 4, learned: 0, at: 30, want: 9}, // it is no rule any more
		{id: "b", has: 4, learned: 9, at: 20, want: 9},
		{id: "b", has: 9, learned: 1, at: time.Now().Add(time.Hour).UnixMicro(), want: 9},
		{id: "a", has: 1, learned: 20, at: 40, want: 9}, // the clock moved back since
		{id: "a", has: 1, learned: 12, at: 50, garbage: true, want: 3},
	} {
		if c.garbage {
			client.HSet(t.Context(), key, " learned", "nine")
		}
		got := slotsCall{id: c.id, number: int64(1 + i), most: MostSlots, has: c.has, wants: 9, learned: c.learned, at: c.at}.run(t, client, key)
		if got.Has != c.want {
			t.Errorf("call %d: %+v, want %d slots", i+1, got, c.want)
		}
	}
}

// No call is long, even if thousands of replicas lack huge parts of a huge number of slots.
func TestSlotsScriptIsShortForAnyNumbers(t *testing.T) {
	server, client := slotsClient(t)
	const replicas, key = 2000, "weir:1:{x/huge}:flights"
	seed(t, client, key, replicas, MostSlots, func(i int) (has, wants int) {
		if i == 0 {
			return MostSlots, MostSlots
		}
		return 0, MostSlots/replicas + 300*i // above the even part until others want less
	})
	first := slotsCall{id: "replica0", number: 2, most: MostSlots, wants: MostSlots}
	before := spent(server)
	got := first.run(t, client, key)
	if took := spent(server) - before; took == 0 || took > time.Second {
		t.Errorf("the call took %v of the processor, want a second at most", took)
	}
	if got.Replicas != replicas || !got.Contended || got.Has < MostSlots/replicas || got.Fleet != got.Has {
		t.Errorf("the first was answered %+v", got)
	}
}

// The clock of Redis moves back: the slots of a dead replica are free at the end of its lease. It
// moves ahead: no slot is leased twice.
func TestSlotsScriptFollowsAClockThatIsStepped(t *testing.T) {
	_, client := slotsClient(t)
	for _, step := range []time.Duration{-20 * time.Minute, 0, 30 * time.Second} {
		const has = 10
		key := fmt.Sprintf("weir:1:{x/stepped%v}:flights", step)
		one := slotsCall{id: "a", number: 1, most: 20, wants: 10, lease: 10 * time.Second, come: time.Second}
		other := one
		other.id = "b"
		one.run(t, client, key)
		other.run(t, client, key)
		for id, text := range client.HGetAll(t.Context(), key).Val() {
			var call, most, till, had, wants, sure, since, called, lasts int64
			if _, err := fmt.Sscan(text, &call, &most, &till, &had, &wants, &sure, &since, &called, &lasts); err != nil {
				t.Fatal(err)
			}
			till, since = till-step.Microseconds(), since-step.Microseconds()
			client.HSet(t.Context(), key, id, fmt.Sprintf("%d %d %d %d %d %d %d %d %d", call, most, till, had, wants, sure, since, called, lasts))
		}
		one.number, one.has, one.wants = 2, 10, 20
		if got := one.run(t, client, key); got.Has != has || got.Ends > 10*time.Second {
			t.Errorf("by %v: %+v, want %d slots, and the other lease to end in 10 s", step, got, has)
		}
		one.number = 3
		if got := one.run(t, client, key); got.Ends >= 10*time.Second {
			t.Errorf("by %v: the other lease ends in %v, and later with each call", step, got.Ends)
		}
	}
	if ttl := client.PTTL(t.Context(), "weir:1:{x/stepped0s}:flights").Val(); ttl < 40*time.Second {
		t.Errorf("the leases live for %v, want longer than a step of 30 s", ttl)
	}
}

// BenchmarkSlotsScript is a call of one of n replicas.
func BenchmarkSlotsScript(b *testing.B) {
	server, client := slotsClient(b)
	for _, replicas := range []int{1, 20, 200, 2000} {
		for _, most := range []int{replicas / 2, MostSlots} {
			b.Run(fmt.Sprintf("%d of %d", most, replicas), func(b *testing.B) {
				key, most := fmt.Sprintf("weir:1:{x/%d-%d}:flights", replicas, most), max(most, 1)
				seed(b, client, key, replicas, most, func(i int) (has, wants int) {
					return min(max(most/replicas, 1), max(most-i, 0)), most
				})
				c := slotsCall{id: "replica0", number: 2, most: most, wants: most}
				c.run(b, client, key) // asks others to call, once
				server.Do("CONFIG", "RESETSTAT")
				for b.Loop() {
					c.number++
					c.run(b, client, key)
				}
				b.ReportMetric(usecPerCall(server), "redis-µs/op")
			})
		}
	}
}
