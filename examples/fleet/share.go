package main

import (
	"context"
	"fmt"
	"io"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

// share runs the fleet and returns the result. It ends early when ctx does.
func share(ctx context.Context, o options, stdout io.Writer) (result, error) {
	server, err := openRedis(ctx, o.redis)
	if err != nil {
		return result{}, err
	}
	defer server.close()
	var events []event
	if o.chaos {
		events = plan(o.seed, o.length, o.replicas, kinds(server))
	}
	room := roomFor(o.limit, o.replicas, events)
	v, err := openVendor(o.limit.Permits, o.limit.Per, room.burst())
	if err != nil {
		return result{}, err
	}
	defer v.Close()
	introduce(stdout, o, server, room)
	if o.chaos {
		writeSchedule(stdout, o.seed, events)
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f, err := openFleet(o.task(v, server), cancel)
	if err != nil {
		return result{}, err
	}
	defer f.end()
	fmt.Fprintln(stdout)
	d := newDisplay(stdout, o.replicas)
	c := &chaos{fleet: f, redis: server, vendor: v, note: d.note, events: events}
	w := watcher{fleet: f, vendor: v, room: room, length: o.length}
	length, err := w.run(ctx, d, c)
	f.end()
	return w.result(length, c.happened), err
}

func (o options) task(v *vendor, server redisServer) task {
	return task{Replicas: o.replicas, Workers: o.workers, Vendor: v.URL, Redis: server.addr(), Limit: o.limit}
}

// introduce prints what is about to happen.
func introduce(w io.Writer, o options, server redisServer, m room) {
	fmt.Fprintf(w, `%d processes share %s through %s for %v. In each of them %d workers call
through a client like this one:

    &http.Client{Transport: &weir.Transport{
        Limits: []throttle.Limit{%s},
        Store:  distributed.New(rdb, "fleet"),
    }}

The vendor accepts %s and a burst of %d, and answers anything beyond with 429.
The burst is %v.
`, o.replicas, o.limit, server.about(), o.length, o.workers, program.Constructor(o.limit), rateOf(o.limit), m.burst(), m)
}

func rateOf(l throttle.Limit) string { return fmt.Sprintf("%.4g/s", l.PerSecond()) }
