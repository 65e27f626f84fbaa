package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// writeTable prints a row for each limit and one for all, and notes.
func writeTable(w io.Writer, r result) {
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "seconds\tlimit\tserved\tcould be\tshare\t429s\t")
	all := 0
	for i, p := range r.phases {
		served, refused := r.between(p.from, r.until(i))
		could := r.could(i)
		all += could
		fmt.Fprintf(tw, "%.1f to %.1f\t%.0f/s\t%d\t%d\t%s\t%d\t\n",
			p.from.Seconds(), r.until(i).Seconds(), p.limit.PerSecond(), served, could, share(served, could), refused)
	}
	served, refused := r.between(0, r.length)
	fmt.Fprintf(tw, "all\t\t%d\t%d\t%s\t%d\t\n", served, all, share(served, all), refused)
	_ = tw.Flush()
	fmt.Fprintln(w, "could be: what the vendor would have served, its rate and the burst once")
	if r.failed > 0 {
		fmt.Fprintf(w, "%d calls failed; the first ended with: %s\n", r.failed, r.cause)
	}
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}
