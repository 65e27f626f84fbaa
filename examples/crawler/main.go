// Crawler fetches pages of six hosts as a polite crawler does: one page a second from each
// host, and two at once at most.
//
//	go run ./crawler
//
// All pages are asked for at once, through one [http.Client]. Its [weir.Transport] makes a lane for
// each host by itself, so no host waits for another. One host takes 2.5 s for a page: there, the
// bound on calls in flight limits it. One host answers 503 with Retry-After: 4. Then its lane stops
// for that time, the page is asked for again, and the lanes of the other hosts go on.
//
// The hosts are part of the program, on one loopback socket. It prints a line for each
// of them, and draws when each page was fetched into crawler.svg and crawler.png.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

const pages = 12 // of each host, more than can be fetched in the time

var crawler = program.Drawing{
	Name:  "crawler",
	What:  "how long pages are fetched",
	Shown: program.Shown{For: 10 * time.Second, Out: "crawler"},
	Run:   run,
}

func main() { crawler.Main() }

// newClient returns a client with a lane for each host: a Transport without a Key has one.
func newClient(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &weir.Transport{
		Base:     base,
		Limits:   []throttle.Limit{throttle.LeakyBucket(1, time.Second)},
		InFlight: weir.InFlight{Max: 2},
	}}
}

// A host is an embedded one.
type host struct {
	name   string
	vendor *testserver.Vendor
}

// pause is the wait in the overloaded host's answer.
const pause = 4 * time.Second

var overloaded = testserver.Fault{First: 3, Last: 3, Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"4"}}}

func newHosts() []host {
	hosts := []host{
		{"docs.test", &testserver.Vendor{Service: 150 * time.Millisecond}},
		{"news.test", &testserver.Vendor{Service: 300 * time.Millisecond}},
		{"shop.test", &testserver.Vendor{Service: 2500 * time.Millisecond}},
		{"blog.test", &testserver.Vendor{Service: 200 * time.Millisecond, Faults: []testserver.Fault{overloaded}}},
		{"wiki.test", &testserver.Vendor{Service: 100 * time.Millisecond}},
		{"maps.test", &testserver.Vendor{Service: 500 * time.Millisecond}},
	}
	for _, h := range hosts {
		h.vendor.Limits = []testserver.Limit{testserver.Concurrency(2)}
		h.vendor.Start()
	}
	return hosts
}

// run fetches all pages of all hosts at once, until the context ends.
func run(ctx context.Context, o program.Shown, stdout io.Writer) (chart.Picture, error) {
	hosts := newHosts()
	web, err := testserver.Listen(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		i := slices.IndexFunc(hosts, func(h host) bool { return h.name == req.Host })
		hosts[i].vendor.ServeHTTP(w, req) // the client requests no other
	}))
	if err != nil {
		return chart.Picture{}, err
	}
	defer web.Close()
	client := newClient(web.Transport()) // every host leads to this program
	fmt.Fprintf(stdout, "%d pages of each of %d hosts: one a second, two at once at most.\n\n", pages, len(hosts))

	var fetches sync.WaitGroup
	for _, h := range hosts {
		for page := range pages {
			fetches.Go(func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/page/%d", h.name, page), nil)
				if err == nil {
					err = program.Send(client, req)
				}
				if err != nil && ctx.Err() == nil {
					fmt.Fprintf(stdout, "%s: page %d: %v\n", h.name, page, err)
				}
			})
		}
	}
	fetches.Wait()

	for _, h := range hosts {
		all := h.vendor.Arrivals()
		fetched := all.Filter(func(a testserver.Arrival) bool { return a.Status == http.StatusOK })
		fmt.Fprintf(stdout, "%s: %2d pages, %d at once at most, %.2f s between two at least, refused %d\n",
			h.name, len(fetched), atOnce(fetched), all.MinGap().Seconds(), all.Count(http.StatusServiceUnavailable))
	}
	return picture(hosts, o.For), nil
}

// atOnce returns the most pages that were in flight at one time.
func atOnce(fetched testserver.Arrivals) (most int) {
	for _, a := range fetched {
		most = max(most, len(fetched.Filter(func(b testserver.Arrival) bool { return b.At <= a.At && a.At < b.Answered })))
	}
	return most
}
