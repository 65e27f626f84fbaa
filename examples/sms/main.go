// Sms shows what a priority is worth: a sender may send 5 messages a second, a
// campaign of 50 stands in line, and one-time passwords come now and then. One line
// lets messages go in the order in which they came, the other lets the passwords go
// first. Nothing is sent: the program needs no server, and a [shaping.Queue] no HTTP.
//
//	go run ./sms
//
// It prints a table of who waited for how long, and draws each message's wait into
// sms.svg and sms.png. It takes 20 seconds; with -for it takes another time, and
// the campaign takes half of that.
//
// It exits with 0, 1 when a picture could not be written, 2 for a bad flag, and 130
// after Ctrl-C, which ends it with the table and the picture of what happened so far.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/shaping"
)

// urgent is the one line that differs.
func urgent(ctx context.Context) context.Context {
	return shaping.WithPriority(ctx, shaping.PriorityHigh)
}

func inOrder(ctx context.Context) context.Context { return ctx }

func main() {
	program.Main(run, os.Interrupt)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := program.ParseShown("sms", "how long messages are sent", program.Shown{For: 20 * time.Second, Out: "sms"}, args, stdout)
	if err != nil {
		return program.Usage("sms", err, stderr)
	}
	fmt.Fprintf(stdout, "A sender of %.0f messages a second, a campaign of %d in line, and passwords now and then.\n", limit.PerSecond(), campaign(o.For))
	lines, err := send(ctx, o.For)
	if err != nil {
		return program.Fail("sms", err, stderr)
	}
	writeTable(stdout, lines)
	if err := writePicture(o.Out, lines); err != nil {
		return program.Fail("sms", err, stderr)
	}
	fmt.Fprintf(stdout, "\npicture: %s\n", chart.Files(o.Out))
	return program.Code(ctx, false)
}
