package distributed_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Replies and published messages are the same over RESP2 and RESP3.
func TestFleetSpeaksBothProtocols(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{config: patiently()})
			for range 3 {
				c := f.way()
				f.adopt(c, redis.NewClient(&redis.Options{Addr: c.Redis.Addrs[0], Protocol: protocol}))
			}
			f.steady()
			f.pass(moment)
			f.members[0].queue.Pause(2 * patience)
			await(t, "the news of a pause", func() bool { return f.members[1].queue.State().Paused != 0 })
			flights, err := f.members[0].store.Flights("lane", 1)
			if err != nil {
				t.Fatal(err)
			}
			flights.Await(1)
			await(t, "a slot", flights.Board)
			flights.Land()
			for i, s := range f.states() {
				if s.Failures > 0 || s.Lost {
					t.Errorf("replica %d: %d calls of %d failed: %s", i, s.Failures, s.Calls, s.Cause)
				}
			}
			f.judge()
		})
	}
}
