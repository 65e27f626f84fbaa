package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// An ordeal is an unconfigured fleet and its faults, one phase after another.
type ordeal struct {
	*bench
	vendor *testserver.Vendor
	task   task          // of each replica
	phase  time.Duration // length of each phase
	ends   time.Time
	fleet  fleet // those alive
}

// A blow is the fault at the start of a phase.
type blow struct {
	name   string
	strike func(context.Context) error
}

func (o *ordeal) blows() []blow {
	return []blow{
		{"learns", func(context.Context) error { return o.start(drainers) }},
		{"four killed", func(context.Context) error {
			dead := o.fleet[drainers/2:]
			o.fleet = slices.Clip(o.fleet[:drainers/2])
			dead.kill()
			return nil
		}},
		{"flushed", func(ctx context.Context) error { return o.server.admin.FlushAll(ctx).Err() }},
		{"four started", func(context.Context) error { return o.start(drainers / 2) }},
		{"Redis restarted", o.server.restart},
	}
}

// faults has a fleet learn. Then four of its replicas are killed, Redis is flushed, four replicas
// start, and Redis is killed and restarted empty.
func (b *bench) faults(ctx context.Context) error {
	phase := b.duration(8 * time.Second)
	s := newSheet(b.out, fmt.Sprintf("%d replicas of %d workers, a vendor of %d/s burst %d, of which nobody is told; %v for each phase; medians of %d",
		drainers, drainWorkers, vendorRate, vendorBurst, phase, b.runs),
		column{"served / s", 1}, column{"used", 3}, column{"429s", 0}, column{"back at 0.9 s", 2}, column{"failed", 0})
	for range b.runs {
		for _, tells := range tellings {
			if !b.tells(tells.name) {
				continue
			}
			if err := b.faultsOnce(ctx, s, tells, phase); err != nil {
				return err
			}
		}
	}
	s.close()
	return nil
}

func (b *bench) faultsOnce(ctx context.Context, s *sheet, tells telling, phase time.Duration) error {
	vendor := newVendor(tells.styles)
	listening, err := testserver.Listen(vendor)
	if err != nil {
		return err
	}
	defer listening.Close()
	o := &ordeal{bench: b, vendor: vendor, phase: phase, task: task{
		Who: learning, Redis: b.server.addr, Quota: quota{b.name(), vendorRate, vendorBurst}, Replicas: drainers,
		Workers: drainWorkers, Vendor: listening.URL,
	}}
	return o.undergo(ctx, s, tells.name)
}

// undergo runs all phases, and writes the outcome of each.
func (o *ordeal) undergo(ctx context.Context, s *sheet, name string) (err error) {
	blows := o.blows()
	o.ends = time.Now().Add(time.Duration(len(blows)) * o.phase)
	defer func() { o.fleet.kill() }()
	began, at := o.vendor.Start(), make([]time.Duration, len(blows)+1)
	for i, blow := range blows {
		at[i] = time.Since(began)
		if err = blow.strike(ctx); err != nil {
			return fmt.Errorf("fleet: %s: %w", blow.name, err)
		}
		time.Sleep(time.Until(o.ends) - time.Duration(len(blows)-1-i)*o.phase)
	}
	at[len(blows)] = time.Since(began)
	reports, err := o.fleet.reports()
	all, failed := o.vendor.Arrivals(), 0
	for i, blow := range blows {
		s.add(name+", "+blow.name, phaseFigures(all, at[i], at[i+1])...)
	}
	for _, rep := range reports {
		failed += rep.Failed
	}
	s.add(name+", in all", append(phaseFigures(all, at[0], at[len(blows)])[:4], float64(failed))...)
	return err
}

// start adds n replicas.
func (o *ordeal) start(n int) error {
	t := o.task
	t.Lasts = time.Until(o.ends)
	more, err := startFleet(slices.Repeat([]task{t}, n))
	if err != nil {
		return err
	}
	o.fleet = append(o.fleet, more...)
	return more.begin()
}

// phaseFigures are those of the sheet, for one phase.
func phaseFigures(all testserver.Arrivals, from, to time.Duration) []float64 {
	all = all.Filter(func(a testserver.Arrival) bool { return from <= a.At && a.At < to })
	rate := float64(len(all.Granted())) / (to - from).Seconds()
	return []float64{rate, rate / vendorRate, float64(all.Count(http.StatusTooManyRequests)), backAfter(all.Granted(), from, to), none}
}

// backAfter returns the seconds until the first second in which 0.9 of the vendor's rate was
// served; none without such a second.
func backAfter(granted testserver.Arrivals, from, to time.Duration) float64 {
	const enough = vendorRate * 9 / 10
	for i, begin := 0, from; begin+time.Second <= to && i+enough <= len(granted); i++ {
		if granted[i+enough-1].At < begin+time.Second {
			return (begin - from).Seconds()
		}
		begin = granted[i].At + 1
	}
	return none
}
