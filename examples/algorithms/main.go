// Algorithms draws how each algorithm of package throttle times the same calls. It needs
// no real time: a limiter decides by instants that it is given.
//
//	go run ./algorithms -o ../docs/pictures
//
// It prints a table, and writes a picture of each algorithm into a directory.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

// A subject is a limit to draw. All of them allow 10 calls a second in the long run. GCRA
// is left out: it decides as the token bucket does.
type subject struct {
	file  string
	limit throttle.Limit
}

var subjects = []subject{
	{"token-bucket", throttle.TokenBucket(10, time.Second, 20)},
	{"leaky-bucket", throttle.LeakyBucket(10, time.Second)},
	{"fixed-window", throttle.FixedWindow(20, window)},
	{"sliding-window", throttle.SlidingWindow(20, window)},
	{"sliding-log", throttle.SlidingLog(20, window)},
}

const (
	window = 2 * time.Second
	length = 10 * time.Second
	crowd  = 3800 * time.Millisecond // when many calls come at once
)

// arrivals returns when the calls come: four a second, and 45 at once shortly before the
// end of a window.
func arrivals() (calls []throttle.Instant) {
	for at := time.Duration(0); at < length; at += 250 * time.Millisecond {
		if at-250*time.Millisecond < crowd && crowd <= at {
			for range 45 {
				calls = append(calls, throttle.Instant(crowd))
			}
		}
		calls = append(calls, throttle.Instant(at))
	}
	return calls
}

// depart returns when calls that wait in line for a limit depart.
func depart(limit throttle.Limit, calls []throttle.Instant) (left []throttle.Instant, err error) {
	limiter, err := throttle.Local{Wall: func(now throttle.Instant) throttle.Instant { return now }}.Limiter("", limit)
	if err != nil {
		return nil, err
	}
	now := throttle.Instant(0)
	for _, came := range calls {
		for now = max(now, came); ; {
			grant, err := limiter.Take(now, throttle.Request{N: 1, Since: came})
			if err != nil {
				return nil, err
			}
			if grant.At <= now {
				break // it departs now
			}
			now = grant.At // the limiter is asked again then
		}
		left = append(left, now)
	}
	return left, nil
}

// most returns the most instants in any window.
func most(instants []throttle.Instant) (n int) {
	first := 0
	for i, at := range instants {
		for at.Sub(instants[first]) >= window {
			first++
		}
		n = max(n, i+1-first)
	}
	return n
}

// longest returns the longest wait.
func longest(came, left []throttle.Instant) (wait time.Duration) {
	for i := range came {
		wait = max(wait, left[i].Sub(came[i]))
	}
	return wait
}

// draw returns a picture of arrivals and departures over time.
func (s subject) draw(came, left []throttle.Instant) chart.Picture {
	p := chart.NewPanel(fmt.Sprintf("%s: %d calls in 2 s at most, longest wait %.1f s", s.limit, most(left), longest(came, left).Seconds()), "calls so far")
	arrived, departed := soFar(came), soFar(left)
	arrived.Color, arrived.Width = color.RGBA{R: 0xa8, G: 0xa8, B: 0xa8, A: 0xff}, vg.Points(3)
	departed.Color, departed.Width = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}, vg.Points(2)
	p.Add(arrived, departed)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, length.Seconds(), 0, float64(len(came))
	return chart.Picture{Panels: []*plot.Plot{p}, PanelHeight: 2.4 * vg.Inch, Legend: []chart.Entry{
		{Name: "calls that came", Thumb: arrived}, {Name: "calls that left", Thumb: departed},
	}}
}

// soFar returns a line with a step for each instant.
func soFar(instants []throttle.Instant) *plotter.Line {
	line := &plotter.Line{XYs: plotter.XYs{{}}, StepStyle: plotter.PostStep}
	for i, at := range instants {
		if time.Duration(at) <= length {
			line.XYs = append(line.XYs, plotter.XY{X: time.Duration(at).Seconds(), Y: float64(i + 1)})
		}
	}
	return line
}

// run writes the pictures into a directory and the table to w.
func run(dir string, w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "limit\tat once\tin any 2 s\tlongest wait\t")
	came := arrivals()
	for _, s := range subjects {
		left, err := depart(s.limit, came)
		if err != nil {
			return err
		}
		atOnce := 0
		for i := range came {
			if came[i] == throttle.Instant(crowd) && left[i] == came[i] {
				atOnce++
			}
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.1f s\t\n", s.limit, atOnce, most(left), longest(came, left).Seconds())
		svg, err := s.draw(came, left).SVG()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, s.file+".svg"), svg, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return tw.Flush()
}

func main() {
	flags := flag.NewFlagSet("algorithms", flag.ContinueOnError)
	dir := flags.String("o", ".", "`directory` of the pictures")
	err := program.Parse(flags, os.Args[1:], os.Stdout)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		os.Exit(program.Usage("algorithms", err, os.Stderr))
	}
	if err := run(cmp.Or(*dir, "."), os.Stdout); err != nil {
		os.Exit(program.Fail("algorithms", err, os.Stderr))
	}
}
