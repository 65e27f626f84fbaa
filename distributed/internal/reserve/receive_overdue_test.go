package reserve

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// An event says where most permits are void, not of a few, nor of one
// call that came late.
func TestOverdueIsReportedWhereMostIsVoid(t *testing.T) {
	for _, c := range []struct {
		name       string
		came, void int // each second
		seconds    int
		want       bool
	}{
		{"most", 10, 6, 11, true},
		{"half", 10, 5, 11, false},
		{"none", 10, 0, 11, false},
		{"not long enough", 10, 10, 10, false},
		{"too few", 1, 1, 6, false},
		{"few, for long", 1, 1, 12, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o overdue
			reported := false
			for i := range c.seconds {
				o.came += uint64(c.came)
				o.void += awaited([]permit{{count: c.void}, {count: 1, ahead: true}})
				reported = o.judge(throttle.Instant(time.Hour).Add(time.Duration(i)*time.Second)) || reported
			}
			if reported != c.want {
				t.Errorf("reported: %v, want %v", reported, c.want)
			}
		})
	}
}

func TestVoidPermitsAreReportedOnceAMinute(t *testing.T) {
	var k call.Link
	reported := 0
	for i := range 600 {
		if k.Overdue.Due(time.Unix(1_767_225_600+int64(i), 0)) {
			reported++
		}
	}
	if reported != 10 {
		t.Errorf("reported %d times in ten minutes, want 10", reported)
	}
}

// Every other reply lay in the socket: its permits are void when they come.
func TestVoidPermitsAreAnEvent(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "192.0.2.1:1"}) // nobody asks it
	defer client.Close()
	hub := newHub(t, client)
	l, err := New(hub, "lane", []throttle.Limit{throttle.TokenBucket(100, time.Second, 1)})
	if err != nil {
		t.Fatal(err)
	}
	l.Link, l.Node = new(call.Link), call.NewNode(hub, "", 1)
	reported := 0
	for i := range 60 {
		read := time.Unix(1_767_225_600+int64(i), 0)
		way := time.Duration(i%2) * 100 * time.Millisecond
		got := script.Reply{Now: read.Add(-way).UnixMicro(), Alive: 1, Next: []int64{0}}
		got.Permits = []script.Granted{{At: got.Now, Count: 1 + i%2}}
		l.flight.request = script.Request{Limits: l.encoded, Groups: []script.Group{{Count: 2, Costs: []int64{1}}}}
		reported += len(l.receive(&got, way, read))
		if _, err := l.Take(throttle.InstantOf(read), throttle.Request{N: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if reported != 1 {
		t.Errorf("reported %d times in a minute, want once", reported)
	}
}
