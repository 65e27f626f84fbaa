package main

import (
	"context"
	"fmt"
	"time"
)

// Chaos carries out a schedule.
type chaos struct {
	fleet  *fleet
	redis  redisServer
	vendor *vendor
	note   func(text string) // is called for each event
	events []event

	happened []span
}

// A span is an event as it happened.
type span struct {
	event
	from, until time.Duration // since the run began; equal if it has no end
}

// kinds returns the possible faults here.
func kinds(r redisServer) []kind {
	ks := []kind{killReplica, refuseCall}
	if canHalt {
		ks = append(ks, stopReplica)
	}
	return append(ks, r.kinds()...)
}

// run returns after the last event, or when ctx ends. The first error ends it.
func (c *chaos) run(ctx context.Context, start time.Time) error {
	for _, e := range c.events {
		if !sleepUntil(ctx, start.Add(e.at)) {
			return nil
		}
		c.note(e.String())
		s := span{event: e, from: time.Since(start)}
		s.until = s.from
		if e.kind == refuseCall {
			s.until += pauseAsked * time.Second // no calls
		}
		err := c.begin(e)
		if err == nil && e.lasts > 0 {
			if sleepUntil(ctx, start.Add(e.at+e.lasts)) {
				err = c.end(e)
			}
			s.until = time.Since(start)
		}
		c.happened = append(c.happened, s)
		if err != nil {
			return fmt.Errorf("%s: %w", e.label(), err)
		}
	}
	return nil
}

func (c *chaos) begin(e event) error {
	switch e.kind {
	case killReplica:
		return c.fleet.kill(e.replica)
	case stopReplica:
		return c.fleet.halt(e.replica)
	case refuseCall:
		c.vendor.refuse()
		return nil
	default:
		return c.redis.begin(e.kind)
	}
}

func (c *chaos) end(e event) error {
	switch e.kind {
	case killReplica:
		return c.fleet.restart(e.replica)
	case stopReplica:
		return c.fleet.resume(e.replica)
	default:
		return c.redis.end(e.kind)
	}
}

// sleepUntil reports whether the time came before the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) bool {
	select {
	case <-time.After(time.Until(t)):
		return true
	case <-ctx.Done():
		return false
	}
}
