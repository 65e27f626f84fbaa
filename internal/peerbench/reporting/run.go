package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/peerbench"
	"github.com/weirgo/weir/internal/testserver"
)

// A contender is one way to send the calls; none knows the limit.
type contender struct {
	name string
	wrap func(base http.RoundTripper) http.RoundTripper
}

var contenders = []contender{
	{"weir", func(base http.RoundTripper) http.RoundTripper { return &weir.Transport{Base: base, Logger: silent} }},
	{"retryablehttp", peerbench.Retryable},
	{"obedient", peerbench.Obedient},
}

// A result is the outcome of one run.
type result struct {
	wall    float64 // in ideal times
	refused int     // 429s that the vendor sent
	failed  int     // calls that did not end with 200
	over    int     // calls that departed although the answers so far reported nothing left
}

// patience is how many ideal times a run may take.
const patience = 5

// run sends the calls to a new vendor.
func (v vendor) run(c contender) (result, error) {
	style := v.style
	if v.wrong != nil {
		style = testserver.Seen(style, v.wrong())
	}
	met := &testserver.Vendor{
		Limits:  []testserver.Limit{v.limit},
		Styles:  []testserver.Style{style, testserver.RetryAfterSeconds},
		Service: v.service[0],
		Spread:  v.service[1] - v.service[0],
	}
	server, err := testserver.Listen(met)
	if err != nil {
		return result{}, err
	}
	defer server.Close()
	most := patience * met.Fastest(v.calls())
	strangers := v.strangersAt(server)
	tap := &testserver.Tap{Base: server.Transport()}
	work := peerbench.Work{Calls: v.calls(), Workers: v.workers, Within: most}
	done := work.Through(c.wrap(tap), "http://"+v.host+"/things")
	ideal := met.Fastest(v.calls() + strangers())
	trips := tap.Trips()
	r := result{wall: done.Wall.Seconds() / ideal.Seconds(), failed: done.Failed}
	for _, trip := range trips {
		if trip.Status == http.StatusTooManyRequests {
			r.refused++
		}
	}
	if v.isPlainBucket() {
		r.over = len(testserver.Ceiling{Limit: v.limit}.Over(trips))
	}
	return r, nil
}

// strangersAt makes strangers call the server evenly in the second third of the ideal time, without
// retries. The returned function stops them, and returns how many of their calls were granted.
func (v vendor) strangersAt(server *testserver.Server) func() int {
	if v.taken == 0 {
		return func() int { return 0 }
	}
	ctx, cancel := context.WithCancel(context.Background())
	began := time.Now()
	var granted atomic.Int64
	var all sync.WaitGroup
	client := server.Client()
	all.Go(func() {
		third := time.Duration(v.seconds) * time.Second / 3
		gap := time.Duration(float64(time.Second) / (v.taken * v.rate()))
		for at := third; at < 2*third; at += gap {
			if peerbench.Sleep(ctx, time.Until(began.Add(at))) != nil {
				return
			}
			all.Go(func() {
				if peerbench.Succeeds(ctx, client, server.URL) {
					granted.Add(1)
				}
			})
		}
	})
	return func() int {
		cancel()
		all.Wait()
		return int(granted.Load())
	}
}

// A bench is how often each contender meets each vendor.
type bench struct {
	who  []contender
	runs int
	at   int // vendors at a time
}

// measure writes a row for each vendor, and then those that miss a gate.
func (b bench) measure(w io.Writer, all []vendor) error {
	fmt.Fprintf(w, "Median and worst of %d; wall in ideal times; over: calls that left although nothing was reported left for them.\n\n", b.runs)
	head, rule := "| vendor ", "|---"
	for _, c := range b.who {
		head += fmt.Sprintf("| %s: wall | 429s | failed | over ", c.name)
		rule += strings.Repeat("|---", 4)
	}
	fmt.Fprintf(w, "%s|\n%s|\n", head, rule)
	missed := make([][]string, len(b.who))
	for group := range slices.Chunk(all, b.at) {
		met, err := b.together(group)
		if err != nil {
			return err
		}
		for i, v := range group {
			row := "| " + v.String()
			for j := range b.who {
				row += " | " + cells(met[i][j])
				if !v.passes(met[i][j]) {
					missed[j] = append(missed[j], v.String())
				}
			}
			fmt.Fprintf(w, "%s |\n", row)
		}
	}
	for j, c := range b.who {
		fmt.Fprintf(w, "\n%s: %d of %d within the gates in the worst run. Missed:\n", c.name, len(all)-len(missed[j]), len(all))
		for _, name := range missed[j] {
			fmt.Fprintf(w, "- %s\n", name)
		}
	}
	return nil
}

// together runs all contenders at the vendors, which stand side by side. The results are by vendor,
// contender and run.
func (b bench) together(group []vendor) ([][][]result, error) {
	met := make([][][]result, len(group))
	errs := make([]error, len(group))
	var all sync.WaitGroup
	for i, v := range group {
		met[i] = make([][]result, len(b.who))
		all.Go(func() {
			for range b.runs {
				for j, c := range b.who {
					r, err := v.run(c)
					if err != nil {
						errs[i] = err
						return
					}
					met[i][j] = append(met[i][j], r)
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return met, nil
}

// passes reports whether every run is within the gates.
func (v vendor) passes(runs []result) bool {
	return !slices.ContainsFunc(runs, func(r result) bool {
		return r.wall > v.mostWall() || r.refused > v.mostRefused() || r.failed > 0
	})
}

// cells returns the median and the worst of each figure, or one number if they are equal.
func cells(runs []result) string {
	both := func(median, worst string) string {
		if median == worst {
			return worst
		}
		return median + "; " + worst
	}
	count := func(of func(result) int) string {
		return both(fmt.Sprint(peerbench.Median(runs, of)), fmt.Sprint(of(slices.MaxFunc(runs, func(a, b result) int { return of(a) - of(b) }))))
	}
	wall := func(r result) float64 { return r.wall }
	worst := 0.0
	for _, r := range runs {
		worst = max(worst, r.wall)
	}
	return strings.Join([]string{
		both(fmt.Sprintf("%.2f", peerbench.Median(runs, wall)), fmt.Sprintf("%.2f", worst)),
		count(func(r result) int { return r.refused }),
		count(func(r result) int { return r.failed }),
		count(func(r result) int { return r.over }),
	}, " | ")
}
