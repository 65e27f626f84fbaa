package main

import (
	"context"
	"time"
)

// A watcher observes a run until its end.
type watcher struct {
	fleet  *fleet
	vendor *vendor
	room   room
	length time.Duration
}

// run has the fleet call until the time is over, ctx ends or something fails, and returns how long
// that was.
func (w *watcher) run(ctx context.Context, d display, c *chaos) (time.Duration, error) {
	ctx, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	over, cancel := context.WithTimeout(ctx, w.length)
	defer cancel()
	w.vendor.begin()
	start := time.Now()
	w.fleet.begin()
	calm := make(chan struct{})
	go func() {
		defer close(calm)
		if err := c.run(over, start); err != nil {
			broken(err)
		}
	}()
	tick := time.NewTicker(d.every())
	defer tick.Stop()
	for over.Err() == nil {
		select {
		case <-tick.C:
			d.show(w.look(time.Since(start)))
		case <-over.Done():
		}
	}
	length := min(time.Since(start), w.length)
	<-calm
	d.end(w.look(length))
	if ctx.Err() != nil {
		return length, context.Cause(ctx)
	}
	return length, nil
}
