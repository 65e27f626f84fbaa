// Peraccount puts each call in two lanes: that of its customer account, and that of the
// organisation to which all accounts belong. Three accounts with three tiers call the same vendor
// at the same time through one client. The API key of a call names its account; the lane's key has
// a hash of it.
//
//	go run ./peraccount
//
// It prints a line per account: its tier, its calls, how many the vendor refused,
// and how long they took. The accounts share the organisation's 30/s in turn: so the busy
// one is done after about 4.5 s, the quiet ones long before. With -out picture it draws
// what the vendor served into picture.svg and picture.png. It exits with 1 if a call failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/weirgo/weir"
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

func main() {
	out := flag.String("out", "", "draw what the vendor served into this file, without extension")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	failed, err := run(ctx, os.Stdout, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peraccount:", err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

// run is the program. It returns how many calls failed. If out is not empty, it draws a
// picture.
func run(ctx context.Context, w io.Writer, out string) (failed int, err error) {
	vendor, err := openVendor()
	if err != nil {
		return 0, err
	}
	defer vendor.Close()
	client := newClient(vendor.URL, vendor.Transport())

	fmt.Fprintln(w, "All accounts call at once, through one client:")
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, a := range accounts {
		all.Go(func() {
			n, wall := a.call(ctx, client, vendor.URL)
			mu.Lock()
			defer mu.Unlock()
			failed += n
			fmt.Fprintf(w, "%-11s  %-14s  %3d calls, %d failed, %d refused with 429, done after %.2f s\n",
				a.name, a.tier, a.calls, n, vendor.refused(a), wall.Seconds())
		})
	}
	all.Wait()
	if out != "" {
		err = writePicture(out, vendor.whole.Arrivals())
	}
	return failed, err
}
