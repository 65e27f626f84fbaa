// Command vendors sends calls through an unconfigured Weir to two dozen vendors, over real sockets
// in real time. It prints how much of each vendor's limit was served and what that cost.
//
//	go -C internal/peerbench run ./vendors                  # all, 40 s each, eight side by side: some two minutes
//	go -C internal/peerbench run ./vendors -only log        # those whose name contains it
//	go -C internal/peerbench run ./vendors -for 10s -at 24  # a first look
//
// All vendors share one Transport, with a lane each. "used" is the served share of the vendor's
// rate in that time, including what was lost while the limit was searched; "later" is the same for
// the second half. A burst makes both greater than 1 at most. "early" counts departures before a
// reported time, later than 50 ms after the report: it must be 0.
//
// A busy machine, or too many vendors at once, shows its own delays instead of Weir's. A bucket of
// one refuses whenever a call arrives early after the previous one.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir"
)

func main() {
	b := bench{workers: 32, length: 40 * time.Second}
	flag.IntVar(&b.workers, "workers", b.workers, "callers of each vendor")
	flag.DurationVar(&b.length, "for", b.length, "how long each vendor is called")
	at := flag.Int("at", 8, "vendors called side by side")
	only := flag.String("only", "", "only vendors whose name contains it")
	flag.Parse()
	all := slices.DeleteFunc(vendors(), func(v vendor) bool { return !strings.Contains(v.name(), *only) })
	if err := b.run(os.Stdout, all, max(1, *at)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A bench is the demand.
type bench struct {
	workers int
	length  time.Duration
}

// run calls the vendors, several at a time, and writes a row for each.
func (b bench) run(w io.Writer, all []vendor, at int) error {
	fmt.Fprintf(w, "%d callers for %v\n\n| vendor | says | used | later | 429s | of calls | p99 ms | early |\n|---|---|---|---|---|---|---|---|\n", b.workers, b.length)
	for group := range slices.Chunk(all, at) {
		results, err := b.together(group)
		if err != nil {
			return err
		}
		for i, r := range results {
			fmt.Fprintf(w, "| %v | %s | %.2f | %.2f | %d | %.2f %% | %.0f | %d |\n", group[i].rules(), group[i].word,
				r.used, r.later, r.refused, 100*r.share(), r.p99.Seconds()*1000, r.early)
		}
	}
	return nil
}

// together calls several vendors at once through one Transport.
func (b bench) together(group []vendor) ([]result, error) {
	watch := &watch{}
	transport := &weir.Transport{Base: watch, Logger: slog.New(slog.DiscardHandler)}
	defer transport.Close()
	results := make([]result, len(group))
	errs := make([]error, len(group))
	ctx, cancel := context.WithTimeout(context.Background(), b.length)
	defer cancel()
	var all sync.WaitGroup
	for i, v := range group {
		all.Go(func() { results[i], errs[i] = b.call(ctx, v, transport, watch) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}
