// Page serves the page of a Transport's lanes while customers call a vendor through it:
// three accounts, or as many as -lanes says.
//
//	go run ./page -addr localhost:8080
//
// Open http://localhost:8080/. It ends with Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where the page is served")
	lanes := flag.Int("lanes", 3, "accounts, each with a lane")
	operate := flag.Bool("operate", false, "let whoever opens the page pause and resume lanes, and set limits")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		fmt.Printf("http://%s/\n", listener.Addr())
		err = run(ctx, listener, *lanes, *operate)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// busy is how many accounts call as often with any number of lanes.
const busy = 3

// run serves the page until ctx ends. It closes the listener.
func run(ctx context.Context, listener net.Listener, lanes int, operate bool) error {
	vendor, err := testserver.Listen(&testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(20_000, time.Second, 20_000)}})
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer vendor.Close()
	transport := &weir.Transport{
		Key:    func(req *http.Request) string { return req.Header.Get("X-Account") },
		Limits: []throttle.Limit{throttle.TokenBucket(5, time.Second, 10), throttle.FixedWindow(1_000, time.Hour)},
	}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	for i := range lanes {
		account, pause := fmt.Sprintf("account-%d", i+1), time.Second
		if i >= busy {
			pause = max(pause, time.Duration(lanes)*500*time.Microsecond) // 2,000 calls a second at most
		}
		for range max(20-8*i, 1) { // the first ones have more workers than their limit serves
			go work(ctx, client, vendor.URL, account, pause)
		}
	}
	page := weir.Handler(transport)
	page.Operate = func(*http.Request) bool { return operate }
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// work calls the vendor for an account, again and again. The first call is at a random instant.
func work(ctx context.Context, client *http.Client, url, account string, pause time.Duration) {
	for wait := rand.N(pause); sleep(ctx, wait); wait = pause {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return
		}
		req.Header.Set("X-Account", account)
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
		}
	}
}

// sleep reports whether the time is over before ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
