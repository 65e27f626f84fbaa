package program

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/weirgo/weir/examples/internal/chart"
)

// A Drawing is a program that runs for a time, and then draws what it saw.
type Drawing struct {
	Shown
	Name string // of the program
	What string // what -for means

	// Run runs until the time in Shown is over or ctx ends, and prints its figures. The
	// picture has what happened until then.
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
	picture, err := d.Run(ctx, o, stdout)
	if err == nil {
		err = picture.Write(o.Out)
	}
	if err != nil {
		return Fail(d.Name, err, stderr)
	}
	fmt.Fprintf(stdout, "\npicture: %s\n", chart.Files(o.Out))
	return Code(ctx, false)
}
