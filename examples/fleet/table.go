package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// writeTable prints a row for each replica and one for all, and notes.
func writeTable(w io.Writer, r result) {
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "replica\tsent\tshare\t429s\tcalls to Redis\tstarts\t")
	starts := 0
	for i, row := range r.rows {
		fmt.Fprintf(tw, "%d\t%d\t%s\t%d\t%d\t%d\t\n",
			i+1, row.sent, percent(row.sent, len(r.arrivals)), row.refused, row.calls, row.starts)
		starts += row.starts
	}
	fmt.Fprintf(tw, "all\t%d\t\t%d\t%d\t%d\t\n", len(r.arrivals), r.refused(), r.calls, starts)
	_ = tw.Flush()

	fmt.Fprintln(w)
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	ideal := r.room.ideal(r.length)
	fmt.Fprintln(tw, "rate\tideal\trate/ideal\tworst second\tbound\t429s\tcalls to Redis per request\t")
	fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t\n",
		rate(float64(len(r.arrivals)), r.length), rate(ideal, r.length), ratio(float64(len(r.arrivals)), ideal),
		r.arrivals.MaxIn(time.Second), r.room.inSecond(), r.refused(),
		ratio(float64(r.calls), float64(len(r.arrivals))))
	_ = tw.Flush()
	fmt.Fprintln(w, "ideal: the rate, and the burst once; worst second: most requests in any second")
	if r.scheduled > 0 {
		fmt.Fprintf(w, "%d of the 429s by the schedule\n", r.scheduled)
	}
	if r.alone > 0 {
		fmt.Fprintf(w, "%d permits spent without Redis, by each replica at its part of half the rate\n", r.alone)
	}
	if r.failed > 0 {
		fmt.Fprintf(w, "%d calls failed; the first of a replica ended with: %s\n", r.failed, r.cause)
	}
}

// The next two return "-" if the divisor is zero.

func ratio(a, b float64) string {
	if b <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func percent(a, b int) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(a)/float64(b))
}

func rate(n float64, d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f/s", n/d.Seconds())
}
