// Command reporting drains vendors that report on each answer what is left: 24
// token buckets and 6 windows, in the dialects of real vendors, with a reset of
// the next permit, of the full bucket, or none. Six more are
// disturbed: nodes that disagree, old readings, strangers.
//
// It prints the time, the 429s, and how many calls departed although the answers so far reported
// nothing left. That last count is no fault if answers take 40 ms or more: a client that knows the
// rate need not wait for them.
//
//	go -C internal/peerbench run ./reporting                   # an hour
//	go -C internal/peerbench run ./reporting -who weir -runs 1 # four minutes
//	go -C internal/peerbench run ./reporting -only 'burst 20, .*epoch'
//	go -C internal/peerbench run ./reporting -list
//
// Each vendor gets the calls that it grants in 10 s from 64 workers, or 16 if it is slow. No
// contender knows a limit: Weir unconfigured, go-retryablehttp, and a client that obeys Retry-After
// with jitter.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
)

var silent = slog.New(slog.DiscardHandler)

func main() {
	only := flag.String("only", "", "vendors whose row matches this expression")
	who := flag.String("who", "weir,retryablehttp,obedient", "contenders")
	runs := flag.Int("runs", 3, "runs of each contender at each vendor")
	at := flag.Int("at", 2, "vendors at a time")
	seconds := flag.Int("seconds", 10, "for which a client that knows the limit is busy")
	list := flag.Bool("list", false, "name the vendors and end")
	flag.Parse()
	matching, err := regexp.Compile(*only)
	if err != nil || *runs < 1 || *at < 1 || *seconds < 1 {
		fmt.Fprintln(os.Stderr, "-only needs an expression, -runs, -at and -seconds a positive number:", err)
		os.Exit(2)
	}
	vendors := slices.DeleteFunc(grid(*seconds), func(v vendor) bool { return !matching.MatchString(v.String()) })
	if *list {
		for _, v := range vendors {
			fmt.Println(v)
		}
		return
	}
	b := bench{runs: *runs, at: *at}
	for _, c := range contenders {
		if slices.Contains(strings.Split(*who, ","), c.name) {
			b.who = append(b.who, c)
		}
	}
	if err := b.measure(os.Stdout, vendors); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
