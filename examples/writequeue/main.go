// Writequeue keeps writes to a database within the rate that the database can take. It has no HTTP
// in it: a [shaping.Queue] is in front of a store.
//
//	go run ./writequeue
//
// The store takes 50 writes a second. Orders come at 25 a second, and a report of 300
// rows comes at once, after three seconds. The queue lets orders go first, keeps at most
// 100 writes in line, and lets none wait for longer than 5 s. A write that does not
// fit is rejected at once, with an error that says why. The caller can act on it: here it
// drops the row.
//
// The store is part of the program. It prints how many writes were written, and draws the line and the writes of each moment into writequeue.svg and writequeue.png.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

var (
	limit = throttle.TokenBucket(50, time.Second, 5).Named("database")
	line  = shaping.Line{
		MaxWaiting: 100,                             // with orders at 25/s, the last one waits for 4 s
		MaxWait:    5 * time.Second,                 // a write is useless after that
		Overflow:   shaping.OverflowShedLeastUrgent, // an order takes the place of a row
	}
)

const (
	orderEvery = 40 * time.Millisecond
	reportAt   = 3 * time.Second
	reportRows = 300
)

var writequeue = program.Drawing{
	Name:  "writequeue",
	What:  "how long writes come",
	Shown: program.Shown{For: 9 * time.Second, Out: "writequeue"},
	Run:   run,
}

func main() { writequeue.Main() }

// A writer writes to the store, in the turns of a queue.
type writer struct {
	queue *shaping.Queue
	store *store
	began time.Time

	mu      sync.Mutex
	outcome map[kind]*outcome
}

// A kind of write.
type kind string

const (
	order kind = "orders"
	row   kind = "rows of the report"
)

// An outcome counts the writes of a kind.
type outcome struct {
	came     int
	written  []time.Duration // instants, since the start
	rejected []time.Duration
	reason   error         // of the first rejected one; nil: none
	longest  time.Duration // of a completed write
}

// write waits for the write's turn, writes, and records the outcome.
func (w *writer) write(ctx context.Context, k kind) {
	if k == order {
		ctx = shaping.WithPriority(ctx, shaping.PriorityHigh)
	}
	came := time.Now()
	err := w.queue.Wait(ctx)
	waited := time.Since(came)
	if err == nil {
		w.store.write()
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.outcome[k]
	o.came++
	switch now := time.Since(w.began); {
	case err == nil:
		o.written, o.longest = append(o.written, now), max(o.longest, waited)
	case errors.Is(err, shaping.ErrQueueFull), errors.Is(err, shaping.ErrDeadline):
		o.rejected = append(o.rejected, now) // a service would answer 503, or try again later
		if o.reason == nil {
			o.reason = err
		}
	}
}

// run starts writes until the context ends.
func run(ctx context.Context, _ program.Shown, stdout io.Writer) (chart.Picture, error) {
	limiter, err := throttle.Local{}.Limiter("database", limit)
	if err != nil {
		return chart.Picture{}, err
	}
	w := &writer{queue: shaping.NewQueue(limiter), store: new(store), began: time.Now(), outcome: map[kind]*outcome{order: {}, row: {}}}
	w.queue.Line = line
	defer w.queue.Close()
	fmt.Fprintf(stdout, "A store of %s, orders at %.0f/s, and a report of %d rows at once.\n\n", limit, 1/orderEvery.Seconds(), reportRows)

	lengths := w.comeAndGo(ctx)

	for _, k := range []kind{order, row} {
		o := w.outcome[k]
		fmt.Fprintf(stdout, "%18s: %d came, %d written, %d rejected, longest wait %.2f s\n", k, o.came, len(o.written), len(o.rejected), o.longest.Seconds())
		if o.reason != nil {
			fmt.Fprintf(stdout, "%20s%v\n", "", o.reason)
		}
	}
	fmt.Fprintf(stdout, "%18s: %d writes at once at most\n", "the store", w.store.most)
	return picture(w, lengths), nil
}

// comeAndGo lets orders and the report come, and returns the length of the line at each
// order. It returns when all writes have ended.
func (w *writer) comeAndGo(ctx context.Context) (lengths []length) {
	var writes sync.WaitGroup
	defer writes.Wait()
	report := time.After(reportAt)
	orders := time.NewTicker(orderEvery)
	defer orders.Stop()
	for {
		select {
		case <-orders.C:
			writes.Go(func() { w.write(ctx, order) })
		case <-report:
			for range reportRows {
				writes.Go(func() { w.write(ctx, row) })
			}
		case <-ctx.Done():
			return lengths
		}
		lengths = append(lengths, length{time.Since(w.began), w.queue.Waiting()})
	}
}
