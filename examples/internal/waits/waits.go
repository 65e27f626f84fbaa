// Package waits records and draws how long bulk messages and passwords waited in lines.
package waits

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A Line records the messages of one line. Its methods are safe for concurrent use.
type Line struct {
	Name  string
	Bulk  string    // name of the bulk messages: "campaign"
	Began time.Time // the zero of its messages' instants

	mu     sync.Mutex
	kinds  [2][]Message // bulk, passwords
	failed error        // the first error of a message that was not sent; nil: there is none
}

// A Kind is one of the two kinds of messages.
type Kind int

// The kinds.
const (
	Bulk Kind = iota
	Password
)

// A Message came into line, and left it unless it was still waiting at the end.
type Message struct {
	Came, Waited time.Duration
	Sent         bool
}

// Fill sends n bulk messages at once, and passwords now and then until the context ends. Each
// message is sent on its own goroutine. Fill returns when all of them have returned.
func (l *Line) Fill(ctx context.Context, bulk int, send func(context.Context, Kind) error) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for range bulk {
		waiting.Go(func() { l.note(ctx, Bulk, send) })
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same for all lines
	for {
		pause := time.Duration((0.5 + random.Float64()) * float64(time.Second))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		waiting.Go(func() { l.note(ctx, Password, send) })
	}
}

// note sends a message, and records its wait and outcome.
func (l *Line) note(ctx context.Context, kind Kind, send func(context.Context, Kind) error) {
	came := time.Now()
	err := send(ctx, kind)
	m := Message{Came: came.Sub(l.Began), Waited: time.Since(came), Sent: err == nil}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds[kind] = append(l.kinds[kind], m)
	if err != nil && ctx.Err() == nil && l.failed == nil {
		l.failed = err
	}
}

// Err returns the first error of a message that was not sent, other than for the end of the
// run.
func (l *Line) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// messages returns the messages of a kind, in the order of their arrival.
func (l *Line) messages(kind Kind) []Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(slices.Values(l.kinds[kind]), func(a, b Message) int { return int(a.Came - b.Came) })
}
