package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// limit is what the sender may send.
var limit = throttle.LeakyBucket(5, time.Second)

// A line is what became of the messages of one queue.
type line struct {
	name string

	mu        sync.Mutex
	campaign  []message
	passwords []message // in the order in which they came
}

// A message came into line, and left it unless it was still waiting at the end.
type message struct {
	came, waited time.Duration
	sent         bool
}

// send lets the messages wait in a line in the order of their arrival, and in one in
// which passwords are urgent, at the same time.
func send(ctx context.Context, length time.Duration) ([]*line, error) {
	lines := []*line{{name: "in order of arrival"}, {name: "passwords first"}}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var senders sync.WaitGroup
	for i, priority := range []func(context.Context) context.Context{inOrder, urgent} {
		limiter, err := throttle.Local{}.Limiter("sms", limit)
		if err != nil {
			return nil, err
		}
		q := shaping.NewQueue(limiter)
		senders.Go(func() {
			defer q.Close()
			lines[i].fill(ctx, q, campaign(length), began, priority)
		})
	}
	senders.Wait()
	for _, l := range lines {
		slices.SortFunc(l.passwords, func(a, b message) int { return int(a.came - b.came) })
	}
	return lines, nil
}

// campaign returns how many messages stand in line from the beginning: as many as
// the sender may send in half of the time.
func campaign(length time.Duration) int { return int(limit.PerSecond() * length.Seconds() / 2) }

// fill lets the campaign come at once and passwords now and then, until the context
// ends.
func (l *line) fill(ctx context.Context, q *shaping.Queue, campaign int, began time.Time, priority func(context.Context) context.Context) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for range campaign {
		waiting.Go(func() { l.wait(ctx, q, began, &l.campaign) })
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same for both lines
	for {
		pause := time.Duration((0.5 + random.Float64()) * float64(time.Second))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		waiting.Go(func() { l.wait(priority(ctx), q, began, &l.passwords) })
	}
}

// wait lets one message wait, and notes what became of it.
func (l *line) wait(ctx context.Context, q *shaping.Queue, began time.Time, messages *[]message) {
	came := time.Now()
	// A context of its own, without a deadline: a message that cannot go before the
	// end of the run waits until then.
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	err := q.Wait(patient)
	m := message{came: came.Sub(began), waited: time.Since(came), sent: err == nil}
	l.mu.Lock()
	defer l.mu.Unlock()
	*messages = append(*messages, m)
}
