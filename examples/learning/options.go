package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
)

// Options say how long the vendor is called.
type options struct {
	length time.Duration
	out    string // path of the pictures, without extension
}

// A picture of maxLength has 600 bars.
const (
	minLength = time.Second
	maxLength = 5 * time.Minute
)

// parseOptions reads the flags. Asked for help, it prints it and returns
// flag.ErrHelp.
func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("learning", flag.ContinueOnError)
	fs.DurationVar(&o.length, "for", 40*time.Second, "how long the vendor is called; its limit changes after 3/8 of that")
	fs.StringVar(&o.out, "o", "arrivals", "`path` of the pictures, without .svg and .png")
	if err := program.Parse(fs, args, help); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.length < minLength || o.length > maxLength {
		return o, fmt.Errorf("-for %v: want %v to %v", o.length, minLength, maxLength)
	}
	if err := chart.CheckPath(o.out); err != nil {
		return o, fmt.Errorf("-o %w", err)
	}
	return o, nil
}

// change returns when the vendor's limit changes.
func (o options) change() time.Duration { return o.length * 3 / 8 }
