package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// A shape is how waiters are spread, and over what limit.
type shape struct {
	name                       string
	processes, stores, workers int // stores of each process, workers of each store
	rate, burst                int
	settles                    time.Duration // start that is not measured
}

// line has 64 waiters on a limit that saves nothing: a permit not taken in time is lost.
func (b *bench) line(ctx context.Context) error {
	const settles = time.Second
	return b.shapes(ctx, b.duration(8*time.Second),
		shape{"1 x 64", 1, 1, 64, 500, 1, settles},
		shape{"8 x 8", 8, 1, 8, 500, 1, settles},
	)
}

// crowd has 50 replicas of 1,000 waiters on one key.
func (b *bench) crowd(ctx context.Context) error {
	return b.shapes(ctx, b.duration(10*time.Second), shape{"50 x 1,000", 10, 5, 1000, 1000, 20, 3 * time.Second})
}

func (b *bench) shapes(ctx context.Context, lasts time.Duration, shapes ...shape) error {
	s := newSheet(b.out, fmt.Sprintf("%d/s burst %d for %v; medians of %d", shapes[0].rate, shapes[0].burst, lasts, b.runs),
		column{"rate /s", 2}, column{"off %", 3}, column{"failed", 0}, column{"p50 ms", 1}, column{"p99 ms", 1},
		column{"least of a replica", 0}, column{"most", 0},
		column{"scripts / grant", 4}, column{"commands / grant", 2}, column{"setup", 0}, column{"lost", 0}, column{"Redis CPU %", 1})
	for range b.runs {
		for _, shape := range shapes {
			for _, who := range b.among([]string{redisRate, pipelined, increx, weirs}) {
				figures, err := b.shapeOnce(ctx, who, shape, lasts)
				if err != nil {
					return err
				}
				s.add(who+", "+shape.name, figures...)
			}
		}
	}
	s.close()
	return nil
}

func (b *bench) shapeOnce(ctx context.Context, who string, s shape, lasts time.Duration) ([]float64, error) {
	const after = 200 * time.Millisecond // so that the end is not measured
	name, total := b.name(), s.settles+lasts+after
	tasks := make([]task, s.processes)
	for i := range tasks {
		tasks[i] = task{
			Who: who, Redis: b.server.addr, Quota: quota{name, s.rate, s.burst}, Replicas: s.processes * s.stores,
			Workers: s.workers, Stores: s.stores, Lasts: total,
		}
	}
	began, reports, did, err := b.work(ctx, tasks)
	if err != nil {
		return nil, err
	}
	from := began.Add(s.settles)
	g := count(reports, from.UnixNano(), from.Add(lasts).UnixNano())
	rate := float64(len(g.within)) / lasts.Seconds()
	return []float64{
		rate, 100 * (rate/float64(s.rate) - 1), float64(g.failed), quantile(g.within, 0.5), quantile(g.within, 0.99),
		float64(g.least), float64(g.most),
		did.scripts() / float64(g.all), did.commands() / float64(g.all), did.setup(), float64(g.lost), 100 * did.cpu.Seconds() / total.Seconds(),
	}, nil
}

// grants are granted permits.
type grants struct {
	all, failed, lost int
	within            []span // within the measured time
	least, most       int    // of them, per replica
}

func count(reports []report, from, to int64) grants {
	g := grants{least: math.MaxInt}
	for _, rep := range reports {
		g.failed, g.lost = g.failed+rep.Failed, g.lost+rep.Lost
		for _, spans := range rep.Spans {
			before := len(g.within)
			for _, s := range spans {
				if end := s.end(); from <= end && end < to {
					g.within = append(g.within, s)
				}
			}
			own := len(g.within) - before
			g.all, g.least, g.most = g.all+len(spans), min(g.least, own), max(g.most, own)
		}
	}
	return g
}
