package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// The work of the drain.
const (
	vendorRate   = 200
	vendorBurst  = 20
	vendorTakes  = 5 * time.Millisecond
	drainers     = 8
	drainWorkers = 16 // of each replica
)

var drainColumns = []column{
	{"wall s", 3}, {"wall / ideal", 3}, {"429s", 0}, {"failed", 0},
	{"p50 ms", 0}, {"p99 ms", 0}, {"small p99 ms", 0}, {"small done s", 2},
	{"scripts / success", 3}, {"commands / success", 2}, {"setup", 0}, {"lost", 0},
}

// drain makes the replicas call as fast as they can a vendor that refuses what exceeds its limit.
// Each contender runs once per turn, so that other load of the machine affects all of them.
func (b *bench) drain(ctx context.Context) error {
	ideal := time.Duration(max(1, b.calls-vendorBurst)) * time.Second / vendorRate
	s := newSheet(b.out, fmt.Sprintf("%d calls, %d replicas of %d workers, a vendor of %d/s burst %d, Weir told burst %d; ideal %.2f s; medians of %d",
		b.calls, drainers, drainWorkers, vendorRate, vendorBurst, b.burst, ideal.Seconds(), b.runs),
		drainColumns...)
	for range b.runs {
		for _, demand := range b.demands {
			for _, who := range b.among([]string{xtime, redisRate, pipelined, increx, throttled, weirs}, learning) {
				d, err := b.drainOnce(ctx, who, shares(b.calls, drainers, demand), []testserver.Style{testserver.Coarse})
				if err != nil {
					return err
				}
				s.add(who+", "+demand, d.figures(ideal)...)
			}
		}
	}
	s.close()
	return nil
}

// shares divides the calls among the replicas: evenly, or so that the first has
// 80 %.
func shares(calls, replicas int, demand string) []int {
	all := make([]int, replicas)
	rest := all
	if demand == "skewed" {
		all[0] = calls * 8 / 10
		calls, rest = calls-all[0], all[1:]
	}
	for i := range rest {
		rest[i] = calls / len(rest)
		if i < calls%len(rest) {
			rest[i]++
		}
	}
	return all
}

// A drained is the outcome of one run.
type drained struct {
	shares  []int
	began   time.Time
	reports []report
	refused int
	effort  effort
}

func (b *bench) drainOnce(ctx context.Context, who string, shares []int, styles []testserver.Style) (*drained, error) {
	vendor := newVendor(styles)
	listening, err := testserver.Listen(vendor)
	if err != nil {
		return nil, err
	}
	defer listening.Close()
	d := &drained{shares: shares}
	q := quota{b.name(), vendorRate, vendorBurst}
	if who == weirs {
		q.Burst = b.burst
	}
	tasks := make([]task, len(shares))
	for i, calls := range shares {
		tasks[i] = task{
			Who: who, Redis: b.server.addr, Quota: q, Replicas: len(shares), Workers: drainWorkers * drainers / len(shares),
			Vendor: listening.URL, Calls: calls,
		}
	}
	d.began, d.reports, d.effort, err = b.work(ctx, tasks)
	d.refused = vendor.Arrivals().Count(http.StatusTooManyRequests)
	return d, err
}

// newVendor returns the vendor of the drain, which reports in the styles.
func newVendor(styles []testserver.Style) *testserver.Vendor {
	return &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(vendorRate, time.Second, vendorBurst)},
		Styles:  styles,
		Service: vendorTakes,
	}
}

// name returns a new quota's name.
func (b *bench) name() string {
	b.named++
	return fmt.Sprint("quota-", b.named)
}

// work has a fleet do its tasks, and returns what Redis did meanwhile, without the final flushes.
func (b *bench) work(ctx context.Context, tasks []task) (began time.Time, reports []report, did effort, err error) {
	fleet, err := startFleet(tasks)
	if err != nil {
		return began, nil, did, err
	}
	defer func() { err = cmp.Or(err, fleet.end()) }()
	before, err := b.server.effort(ctx)
	if err != nil {
		return began, nil, did, err
	}
	if began, reports, err = fleet.work(); err != nil {
		return began, nil, did, err
	}
	after, err := b.server.effort(ctx)
	return began, reports, after.since(before), err
}

// figures are those of the sheet, in its order.
func (d *drained) figures(ideal time.Duration) []float64 {
	var all, small []span
	failed, lost := 0, 0
	for i, rep := range d.reports {
		all = append(all, rep.Spans[0]...)
		failed, lost = failed+rep.Failed, lost+rep.Lost
		if d.shares[i] < slices.Max(d.shares)/2 {
			small = append(small, rep.Spans[0]...)
		}
	}
	wall := lastEnd(all) - d.began.UnixNano()
	smallDone := none
	if len(small) > 0 {
		smallDone = float64(lastEnd(small)-d.began.UnixNano()) / 1e9
	}
	successes := float64(len(all) - failed)
	return []float64{
		float64(wall) / 1e9, float64(wall) / float64(ideal), float64(d.refused), float64(failed),
		quantile(all, 0.5), quantile(all, 0.99), quantile(small, 0.99), smallDone,
		d.effort.scripts() / successes, d.effort.commands() / successes, d.effort.setup(), float64(lost),
	}
}

func lastEnd(spans []span) int64 {
	last := int64(math.MinInt64)
	for _, s := range spans {
		last = max(last, s.end())
	}
	return last
}

// quantile returns the milliseconds within which that share of the spans ended; none without spans.
func quantile(spans []span, share float64) float64 {
	if len(spans) == 0 {
		return none
	}
	took := make([]int64, len(spans))
	for i, s := range spans {
		took[i] = s.Took
	}
	slices.Sort(took)
	return float64(took[min(int(float64(len(took))*share), len(took)-1)]) / 1e6
}
