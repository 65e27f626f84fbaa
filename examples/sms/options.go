package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
)

// Options say how long messages are sent.
type options struct {
	length time.Duration
	out    string // path of the pictures, without extension
}

const (
	minLength = time.Second
	maxLength = 5 * time.Minute
)

// parseOptions reads the flags. Asked for help, it prints it and returns
// flag.ErrHelp.
func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("sms", flag.ContinueOnError)
	fs.DurationVar(&o.length, "for", 20*time.Second, "how long messages are sent")
	fs.StringVar(&o.out, "o", "waits", "`path` of the pictures, without .svg and .png")
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

// campaign returns how many messages stand in line from the beginning: as many as
// the sender may send in half of the time.
func (o options) campaign() int { return int(limit.PerSecond() * o.length.Seconds() / 2) }
