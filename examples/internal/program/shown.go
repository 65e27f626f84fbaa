package program

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
)

// Shown are the options of a program that runs for a time and draws what it saw.
type Shown struct {
	For time.Duration // how long it runs
	Out string        // path of the pictures, without extension
}

const (
	minShown = time.Second
	maxShown = 5 * time.Minute
)

// ParseShown reads the flags of such a program: its own name, what -for means, and the defaults.
// For -h it prints the help and returns flag.ErrHelp.
func ParseShown(name, what string, defaults Shown, args []string, help io.Writer) (Shown, error) {
	s := defaults
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.DurationVar(&s.For, "for", s.For, what)
	flags.StringVar(&s.Out, "o", s.Out, "`path` of the pictures, without .svg and .png")
	if err := Parse(flags, args, help); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.For < minShown || s.For > maxShown {
		return s, fmt.Errorf("-for %v: want %v to %v", s.For, minShown, maxShown)
	}
	if err := chart.CheckPath(s.Out); err != nil {
		return s, fmt.Errorf("-o %w", err)
	}
	return s, nil
}
