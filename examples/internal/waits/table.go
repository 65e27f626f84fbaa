package waits

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// WriteTable prints how many messages of each line and kind were sent, and their waits.
func WriteTable(w io.Writer, lines ...*Line) {
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "line\tmessages\tcame\tsent\tmedian wait\tlongest\t")
	for _, l := range lines {
		writeRow(tw, l.Name, l.Bulk, l.messages(Bulk))
		writeRow(tw, l.Name, "passwords", l.messages(Password))
	}
	_ = tw.Flush()
	fmt.Fprintln(w, "waits: until sent, or until the end for those that were still in line")
}

func writeRow(w io.Writer, line, kind string, messages []Message) {
	sent := 0
	waits := []time.Duration{}
	for _, m := range messages {
		waits = append(waits, m.Waited)
		if m.Sent {
			sent++
		}
	}
	slices.Sort(waits)
	median, longest := "-", "-"
	if n := len(waits); n > 0 {
		median, longest = seconds(waits[n/2]), seconds(waits[n-1])
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t\n", line, kind, len(messages), sent, median, longest)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
