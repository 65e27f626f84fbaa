// Sms shows what a priority is worth: a sender may send 5 messages a second, a campaign of 50 waits
// in line, and one-time passwords come now and then. One line sends messages in order of arrival,
// the other sends passwords first. Nothing is sent: the program needs no server, and a
// [shaping.Queue] no HTTP.
//
//	go run ./sms
//
// It prints a table of the waits, and draws each message's wait into sms.svg and sms.png. It takes
// 20 seconds; with -for it takes another time, and the campaign takes half of that.
//
// It exits with 0, 1 when a picture could not be written, 2 for a bad flag, and 130
// after Ctrl-C, which ends it with the table and the picture of what happened so far.
package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/examples/internal/waits"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// limit is the sender's limit.
var limit = throttle.LeakyBucket(5, time.Second)

// urgent is the only line that differs.
func urgent(ctx context.Context) context.Context {
	return shaping.WithPriority(ctx, shaping.PriorityHigh)
}

func inOrder(ctx context.Context) context.Context { return ctx }

var sms = program.Drawing{
	Name:  "sms",
	What:  "how long messages are sent",
	Shown: program.Shown{For: 20 * time.Second, Out: "sms"},
	Run:   run,
}

func main() { sms.Main() }

// run lets the messages wait in a line in the order of their arrival, and in one in
// which passwords are urgent, at the same time.
func run(ctx context.Context, o program.Shown, stdout io.Writer) (chart.Picture, error) {
	fmt.Fprintf(stdout, "A sender of %.0f messages a second, a campaign of %d in line, and passwords now and then.\n", limit.PerSecond(), campaign(o.For))
	began := time.Now()
	lines := []*waits.Line{
		{Name: "in order of arrival", Bulk: "campaign", Began: began},
		{Name: "passwords first", Bulk: "campaign", Began: began},
	}
	var senders sync.WaitGroup
	for i, priority := range []func(context.Context) context.Context{inOrder, urgent} {
		limiter, err := throttle.Local{}.Limiter("sms", limit)
		if err != nil {
			return chart.Picture{}, err
		}
		q := shaping.NewQueue(limiter)
		senders.Go(func() {
			defer q.Close()
			lines[i].Fill(ctx, campaign(o.For), func(ctx context.Context, kind waits.Kind) error {
				if kind == waits.Password {
					ctx = priority(ctx)
				}
				return q.Wait(ctx)
			})
		})
	}
	senders.Wait()
	waits.WriteTable(stdout, lines...)
	return waits.Picture(lines...), nil
}

// campaign returns how many messages wait in line from the beginning: as many as the sender may
// send in half of the time.
func campaign(length time.Duration) int { return int(limit.PerSecond() * length.Seconds() / 2) }
