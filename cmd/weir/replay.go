package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirgo/weir/throttle"
)

const replayHelp = `usage: weir replay -limit LIMIT [-limit LIMIT]... [flags] FILE

Lets your own calls wait for limits, as a weir.Transport with one lane would have. FILE has the
times at which calls came; "-" is standard input. It is an access log in the common or combined
format, or a CSV with a column of times: RFC 3339, or seconds or smaller units since 1970.

  weir replay -limit "100/s burst 20" -limit "50/s, 5000/h" -max-wait 30s access.log
  weir replay -limit 10/s -column started_at calls.csv

Each -limit is tried by itself; limits with commas between them hold together.
`

// A replayed is the result of a replay.
type replayed struct {
	arrivals   []throttle.Instant
	candidates []candidate
	maxWait    time.Duration
	spread     bool // the times were whole seconds
}

// replay runs the command.
func replay(args []string, c console) error {
	var r replayed
	var from source
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.Func("limit", "`limits` to try, such as \"100/s burst 20\" or \"10/s, 5000/h\"; may be repeated", func(text string) error {
		one, err := parseCandidate(text)
		r.candidates = append(r.candidates, one)
		return err
	})
	flags.StringVar(&from.format, "format", "", "of FILE: `csv or log`; if empty, by its name and first line")
	flags.StringVar(&from.column, "column", "", "`name or number` of the column of times in a CSV; if empty, the first one")
	flags.DurationVar(&r.maxWait, "max-wait", 0, "longest `wait`: also say what Line.MaxWait would have rejected")
	spreads := flags.Bool("spread", true, "move calls of a second apart evenly, if all times are whole seconds")
	picture := flags.String("o", "", "`path` of a picture, which ends in .svg or .png; if empty, none is drawn")
	rest, err := parse(flags, args, c, replayHelp)
	switch {
	case err != nil:
		return err
	case len(rest) != 1:
		return usagef("%d files, want one", len(rest))
	case len(r.candidates) == 0:
		return usagef("no -limit to try")
	case from.format != "" && from.format != "csv" && from.format != "log":
		return usagef("format %q is neither csv nor log", from.format)
	case r.maxWait < 0:
		return usagef("-max-wait %v is negative", r.maxWait)
	}
	if err := checkPicture(*picture); err != nil {
		return err
	}
	from.path = rest[0]
	times, err := from.read(c.in)
	if err != nil {
		return err
	}
	r.spread = *spreads && spread(times)
	for _, t := range times {
		r.arrivals = append(r.arrivals, throttle.InstantOf(t))
	}
	if err := r.simulate(); err != nil {
		return err
	}
	if err := errors.Join(r.printArrivals(c), r.printTable(c)); err != nil {
		return err
	}
	if *picture == "" {
		return nil
	}
	return r.draw(*picture)
}

// simulate tries each candidate.
func (r *replayed) simulate() (err error) {
	for i := range r.candidates {
		c := &r.candidates[i]
		if c.patient, err = simulate(c.limits, r.arrivals, 0); err == nil && r.maxWait > 0 {
			c.bounded, err = simulate(c.limits, r.arrivals, r.maxWait)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.text, err)
		}
	}
	return nil
}

// windows are those in which arrivals are counted.
var windows = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, time.Hour, 24 * time.Hour}

// printArrivals prints when the calls arrived.
func (r *replayed) printArrivals(c console) error {
	n := len(r.arrivals)
	length := r.arrivals[n-1].Sub(r.arrivals[0])
	fmt.Fprintf(c.out, "%d calls in %v", n, length.Round(time.Millisecond))
	if length > 0 {
		fmt.Fprintf(c.out, ", %.3g/s on average", float64(n-1)/length.Seconds())
	}
	fmt.Fprintln(c.out)
	if r.spread {
		fmt.Fprintln(c.out, "all times are whole seconds: the calls of each are moved apart evenly (-spread=false: they come together)")
	}
	fmt.Fprint(c.out, "most in any")
	for _, window := range windows {
		if window > 0 && window <= max(length, time.Second) {
			fmt.Fprintf(c.out, "  %v: %d", shortest(window), peak(r.arrivals, window))
		}
	}
	_, err := fmt.Fprint(c.out, "\n\n")
	return err
}

// printTable prints each candidate's result.
func (r *replayed) printTable(c console) error {
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "limit\tat once\theld\tp50 wait\tp99 wait\tlongest\tlongest line\t")
	if r.maxWait > 0 {
		fmt.Fprintf(table, "rejected by %v\t", shortest(r.maxWait))
	}
	fmt.Fprintln(table)
	for i := range r.candidates {
		o := &r.candidates[i].patient
		waits := o.sorted()
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t%d\t", r.candidates[i].text, len(waits)-o.held(), o.held(),
			readable(quantile(waits, 0.5)), readable(quantile(waits, 0.99)), readable(waits[len(waits)-1]), o.longest)
		if r.maxWait > 0 {
			n := r.candidates[i].bounded.rejected
			fmt.Fprintf(table, "%d (%.3g %%)\t", n, 100*float64(n)/float64(len(r.arrivals)))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// shortest returns a duration without units of zero: 1m for 1m0s.
func shortest(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// readable rounds a wait to three digits, and one of more than 100 s to seconds.
func readable(d time.Duration) time.Duration {
	for unit := 100 * time.Second; unit >= 100; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
