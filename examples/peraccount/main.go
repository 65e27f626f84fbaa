// Peraccount puts each call in two lanes: that of its customer account, and that of the
// organisation to which all accounts belong. Three accounts with three tiers call the same vendor
// at the same time through one client. The API key of a call names its account; the lane's key has
// a hash of it.
//
//	go run ./peraccount
//
// It prints a line per account: its tier, its calls, how many the vendor refused, and how
// long they took. It draws what the vendor served into peraccount.svg and peraccount.png.
// The accounts share the organisation's 30/s in turn: so the busy one is done after about
// 4.5 s, the quiet ones long before.
//
// It exits with 0, 1 when a call failed or a picture could not be written, 2 for a bad flag,
// and 130 after Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

// An account is a customer's: its calls carry its API key, and its tier says
// what the vendor accepts of them.
type account struct {
	name   string
	apiKey string
	tier   throttle.Limit
	calls  int
}

var accounts = []account{
	{name: "acme", apiKey: "key-of-acme", tier: throttle.TokenBucket(40, time.Second, 10), calls: 120},
	{name: "bolt", apiKey: "key-of-bolt", tier: throttle.TokenBucket(10, time.Second, 5), calls: 15},
	{name: "corner shop", apiKey: "key-of-corner-shop", tier: throttle.TokenBucket(5, time.Second, 3), calls: 4},
}

// organisation is the vendor's limit for all accounts together.
var organisation = throttle.TokenBucket(30, time.Second, 8)

// newClient returns the one client of all accounts.
func newClient(url string, base http.RoundTripper) *http.Client {
	laneOf := weir.ByHeader("Authorization")
	tiers := map[string][]throttle.Limit{"organisation": {ours(organisation)}}
	for _, a := range accounts {
		tiers[laneOf(a.request(context.Background(), url))] = []throttle.Limit{ours(a.tier)}
	}
	return &http.Client{Transport: &weir.Transport{
		Base:      base,
		Keys:      func(req *http.Request) []string { return []string{laneOf(req), "organisation"} },
		LimitsFor: func(lane string) []throttle.Limit { return tiers[lane] }, // nil, of an unknown lane, is no limit
	}}
}

// ours returns our limit for a tier, so that it is never exceeded: two permits less at once,
// because a call may leave a moment after its instant.
func ours(tier throttle.Limit) throttle.Limit {
	return throttle.TokenBucket(tier.Permits, tier.Per, tier.Burst-2)
}

func (a account) request(ctx context.Context, url string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic("peraccount: the vendor's address: " + err.Error())
	}
	req.Header.Set("Authorization", "Bearer "+a.apiKey)
	return req
}

// call makes all calls of the account at once and returns how many failed and how long they took.
func (a account) call(ctx context.Context, client *http.Client, url string) (failed int, wall time.Duration) {
	start := time.Now()
	errs := make([]error, a.calls)
	var calls sync.WaitGroup
	for i := range errs {
		calls.Go(func() { errs[i] = program.Send(client, a.request(ctx, url)) })
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	return failed, time.Since(start)
}

func main() { program.Main(peraccount, os.Interrupt) }

// peraccount is the program.
func peraccount(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("peraccount", flag.ContinueOnError)
	out := flags.String("o", "peraccount", "`path` of the pictures, without .svg and .png")
	err := program.Parse(flags, args, stdout)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		if path := chart.CheckPath(*out); path != nil {
			err = fmt.Errorf("-o %w", path)
		}
	}
	if err != nil {
		return program.Usage("peraccount", err, stderr)
	}
	vendor, err := openVendor()
	if err != nil {
		return program.Fail("peraccount", err, stderr)
	}
	defer vendor.Close()
	failed := callAll(ctx, vendor, stdout)
	if err := picture(vendor.whole.Arrivals()).Write(*out); err != nil {
		return program.Fail("peraccount", err, stderr)
	}
	fmt.Fprintf(stdout, "\npicture: %s\n", chart.Files(*out))
	return program.Code(ctx, failed > 0)
}

// callAll makes the calls of all accounts, and returns how many failed.
func callAll(ctx context.Context, vendor *vendor, stdout io.Writer) (failed int) {
	client := newClient(vendor.URL, vendor.Transport())
	fmt.Fprintln(stdout, "All accounts call at once, through one client:")
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, a := range accounts {
		all.Go(func() {
			n, wall := a.call(ctx, client, vendor.URL)
			mu.Lock()
			defer mu.Unlock()
			failed += n
			fmt.Fprintf(stdout, "%-11s  %-14s  %3d calls, %d failed, %d refused with 429, done after %.2f s\n",
				a.name, a.tier, a.calls, n, vendor.refused(a), wall.Seconds())
		})
	}
	all.Wait()
	return failed
}
