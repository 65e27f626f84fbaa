package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// writeTable prints a row for each run, and notes.
func writeTable(w io.Writer, results []result) {
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "client\tcalls\tfailed\tsent\t429s\twall\tideal\twall/ideal\tp50\tp99\t")
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t\n",
			r.client, r.calls(), r.failed, len(r.arrivals), r.refused(),
			seconds(r.wall), seconds(r.ideal()), ratio(r.wall, r.ideal()),
			millis(percentile(r.latency, 50)), millis(percentile(r.latency, 99)))
	}
	_ = tw.Flush()
	fmt.Fprintln(w, "sent: with the tries after a 429; p50, p99: latency of a call, failed or not")
	for _, r := range results {
		if r.failed > 0 {
			fmt.Fprintf(w, "%s: the first of %d failed calls ended with: %s\n", r.client, r.failed, r.cause)
		}
		if cut := r.asked - r.calls(); cut > 0 {
			fmt.Fprintf(w, "%s: interrupted, %d of %d calls not made or cut off\n", r.client, cut, r.asked)
		}
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func millis(d time.Duration) string {
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}

// ratio returns "-" if the burst alone covers all calls.
func ratio(d, ideal time.Duration) string {
	if ideal <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", d.Seconds()/ideal.Seconds())
}

// percentile returns the smallest of the sorted values that at least p of a hundred do not exceed;
// zero without values.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
