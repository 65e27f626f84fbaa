// Quickstart shows what one line changes: it sends 500 calls from 32 workers to
// a vendor of 50 calls a second with a burst of 10, first through a plain
// http.Client, then through Weir, which learns the limit, and then through Weir
// with the limit configured. The vendor is part of the program and listens on a
// loopback socket; nothing leaves the machine.
//
//	go run ./quickstart
//
// It prints a live progress bar for each run (a line a second where stdout is
// no terminal), then a table: calls, failed calls, requests sent, 429s among
// them, wall time against the ideal, and the latency per call. It draws what
// reached the vendor into quickstart.svg and quickstart.png, and takes 30 seconds.
//
// With -url it calls an endpoint of yours instead, slowly unless you
// say otherwise, and only through Weir with a limit, unless -plain is given; see -h.
//
// It exits with 0 when every call through Weir was answered, 1 when one failed
// or a picture could not be written, 2 for a bad flag, and 130 after Ctrl-C,
// which ends it with the table and the picture of what happened so far.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

// plainClient is what most programs start with.
func plainClient(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: base}
}

// learningClient is the same client with one line changed. Its log would run into the progress bar.
func learningClient(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &weir.Transport{Base: base, Logger: slog.New(slog.DiscardHandler)}}
}

// limitedClient has the limit configured, too.
func limitedClient(base http.RoundTripper, limit throttle.Limit) *http.Client {
	return &http.Client{Transport: &weir.Transport{Base: base, Limits: []throttle.Limit{limit}}}
}

func main() {
	program.Main(run, os.Interrupt)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	if err != nil {
		return program.Usage("quickstart", err, stderr)
	}
	results, err := compare(ctx, o, stdout)
	if err != nil {
		return program.Fail("quickstart", err, stderr)
	}
	writeTable(stdout, results)
	if err := writePictures(o.out, results); err != nil {
		return program.Fail("quickstart", err, stderr)
	}
	fmt.Fprintf(stdout, "\npicture: %s\n", chart.Files(o.out))
	return program.Code(ctx, failed(results))
}

// compare makes one run for each client and returns the results. It stops early when ctx ends.
func compare(ctx context.Context, o options, stdout io.Writer) ([]result, error) {
	introduce(stdout, o)
	var results []result
	for _, c := range contestants(o) {
		target, err := open(o)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(stdout, "\n%s\n", c.about)
		results = append(results, measure(ctx, o, c, target, newDisplay(stdout, c.name, o.calls)))
		target.close()
		if ctx.Err() != nil {
			return results, nil //nolint:nilerr // an interrupt ends the program with the results so far
		}
	}
	return results, nil
}

// A contestant is a client that the program runs.
type contestant struct {
	name   string // in the terminal
	title  string // in the picture
	about  string
	client func(base http.RoundTripper) *http.Client
}

// The names of the contestants.
const (
	plain    = "plain"
	learning = "learning"
	limited  = "limited"
)

// contestants returns the clients to run. A user's own endpoint gets the plain one only with
// -plain, and never one that finds the limit by exceeding it.
func contestants(o options) []contestant {
	all := []contestant{
		{plain, "a plain http.Client", aboutPlain, plainClient},
		{learning, "through Weir, no limit configured", aboutLearning, learningClient},
		{limited, "through Weir, limit configured", aboutLimited(o),
			func(base http.RoundTripper) *http.Client { return limitedClient(base, o.limit) }},
	}
	return slices.DeleteFunc(all, func(c contestant) bool {
		return o.url != "" && (c.name == learning || c.name == plain && !o.plain)
	})
}

// failed reports whether a call through Weir failed.
func failed(results []result) bool {
	return slices.ContainsFunc(results, func(r result) bool { return r.client != plain && r.failed > 0 })
}
