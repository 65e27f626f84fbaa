package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
)

// A Drawing is a program that runs for a time and then draws a picture.
type Drawing struct {
	Shown
	Name string // of the program
	What string // meaning of -for, for its help

	// Run runs until ctx ends, prints its figures, and returns the picture. The context is canceled when the time in Shown is over. It has no deadline: a
	// lane rejects calls that it cannot serve before one.
	Run func(ctx context.Context, o Shown, stdout io.Writer) (chart.Picture, error)
}

// Main runs the program until it ends, or Ctrl-C ends it.
func (d Drawing) Main() { Main(d.Exit, os.Interrupt) }

// Exit runs the program and returns its exit code.
func (d Drawing) Exit(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := ParseShown(d.Name, d.What, d.Shown, args, stdout)
	if err != nil {
		return Usage(d.Name, err, stderr)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(o.For, cancel).Stop()
	picture, err := d.Run(running, o, stdout)
	if err == nil {
		err = picture.Write(o.Out)
	}
	if err != nil {
		return Fail(d.Name, err, stderr)
	}
	fmt.Fprintf(stdout, "\npicture: %s\n", chart.Files(o.Out))
	return Code(ctx, false)
}
