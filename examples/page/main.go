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
	operate := flag.Bool("operate", false, "let whoever opens the page pause and resume lanes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *addr, *lanes, *operate)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the page until ctx ends.
func run(ctx context.Context, addr string, lanes int, operate bool) error {
	vendor, err := testserver.Listen(&testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(1_000, time.Second, 1_000)}})
	if err != nil {
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
		for range max(20-8*i, 1) { // the first ones have more workers than their limit serves
			go work(ctx, client, vendor.URL, fmt.Sprintf("account-%d", i+1))
		}
	}
	page := weir.Handler(transport)
	page.Operate = func(*http.Request) bool { return operate }
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// work calls the vendor for an account, again and again.
func work(ctx context.Context, client *http.Client, url, account string) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return
		}
		req.Header.Set("X-Account", account)
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
