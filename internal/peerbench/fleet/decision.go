package main

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// parts is the number of parts of a contender's run; contenders take turns with them. The time in
// which a machine wakes a goroutine that waits for a socket changes threefold within seconds.
const parts = 10

// decision requests permits of a limit that never delays, from this process, beside a PING of the
// same client.
func (b *bench) decision(ctx context.Context) error {
	lasts := b.duration(time.Second)
	s := newSheet(b.out, fmt.Sprintf("decisions of a limit that is never reached, %v each; medians of %d", lasts, b.runs),
		column{"/ s", 0}, column{"x PING", 2}, column{"µs each", 1}, column{"scripts / decision", 4}, column{"failed", 0}, column{"lost", 0}, column{"Redis CPU %", 0})
	for _, goroutines := range b.goroutines {
		if err := b.decisionOf(ctx, s, goroutines, lasts); err != nil {
			return err
		}
	}
	s.close()
	return nil
}

func (b *bench) decisionOf(ctx context.Context, s *sheet, goroutines int, lasts time.Duration) error {
	rdb := connect(b.server.addr)
	defer func() { _ = rdb.Close() }()
	q := quota{b.name(), 1_000_000, 100_000}
	var all []*asking
	for _, who := range append([]string{ping}, b.among([]string{redisRate, pipelined, increx, weirs})...) {
		c, err := waiting(who, rdb, q)
		if err != nil {
			return err
		}
		defer c.Close()
		a := &asking{contender: c, who: who, goroutines: goroutines}
		if _, err := b.repeat(ctx, a, lasts/parts); err != nil { // it connects
			return err
		}
		all = append(all, a)
	}
	for range b.runs {
		for _, a := range all {
			a.repeated = repeated{}
		}
		for i := range parts * len(all) {
			a := all[i%len(all)]
			r, err := b.repeat(ctx, a, lasts/parts)
			if err != nil {
				return err
			}
			a.add(r)
		}
		for _, a := range all {
			s.add(fmt.Sprintf("%s, %d", a.who, goroutines), a.figures(all[0].rate())...)
		}
	}
	return nil
}

// asking is a contender that goroutines call repeatedly.
type asking struct {
	*contender
	who        string
	goroutines int
	repeated   // in this run so far
}

// figures are those of the sheet, in its order.
func (a *asking) figures(base float64) []float64 {
	rate := a.rate()
	return []float64{
		rate, rate / base, float64(a.goroutines) * 1e6 / rate,
		a.scripts / float64(a.passed), float64(a.failed), float64(a.unheard), 100 * a.cpu.Seconds() / a.took.Seconds(),
	}
}

// A repeated is the outcome of repeated calls.
type repeated struct {
	passed, failed int64
	took, cpu      time.Duration
	scripts        float64
	unheard        int // store calls without an answer
}

func (r *repeated) rate() float64 { return float64(r.passed) / r.took.Seconds() }

func (r *repeated) add(o *repeated) {
	r.passed, r.failed, r.took = r.passed+o.passed, r.failed+o.failed, r.took+o.took
	r.scripts, r.cpu, r.unheard = r.scripts+o.scripts, r.cpu+o.cpu, r.unheard+o.unheard
}

// repeat runs the goroutines for a time. In a profile they are labelled.
func (b *bench) repeat(ctx context.Context, a *asking, lasts time.Duration) (*repeated, error) {
	before, err := b.server.effort(ctx)
	if err != nil {
		return nil, err
	}
	lost := a.lost()
	var over atomic.Bool
	var passed, failed atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	time.AfterFunc(lasts, func() { over.Store(true) })
	for range a.goroutines {
		all.Go(func() {
			pprof.Do(ctx, pprof.Labels("who", a.who, "goroutines", fmt.Sprint(a.goroutines)), func(ctx context.Context) {
				n, bad := a.wait.until(ctx, &over)
				passed.Add(n)
				failed.Add(bad)
			})
		})
	}
	all.Wait()
	took := time.Since(began)
	after, err := b.server.effort(ctx)
	did := after.since(before)
	return &repeated{passed.Load(), failed.Load(), took, did.cpu, did.scripts(), a.lost() - lost}, err
}

// until waits repeatedly until the time is over.
func (w wait) until(ctx context.Context, over *atomic.Bool) (passed, failed int64) {
	for !over.Load() {
		if w(ctx) == nil {
			passed++
		} else {
			failed++
		}
	}
	return passed, failed
}
