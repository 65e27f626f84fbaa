package main

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
)

// An account is one quota at the vendor, and its two users.
type account struct {
	name   string
	sync   *weir.Transport
	styles []testserver.Style // what the vendor reports

	vendor *testserver.Vendor
	server *testserver.Server
}

// The callers, as the vendor records them.
const (
	byConsole = "console"
	bySync    = "sync"
)

func (a *account) open() (err error) {
	a.vendor = &testserver.Vendor{
		Limits: []testserver.Limit{testserver.FixedWindow(quota, window)}, Styles: a.styles, Service: 20 * time.Millisecond,
	}
	if a.server, err = testserver.Listen(a.vendor); err != nil {
		return err
	}
	a.sync.Base, a.sync.Logger = a.server.Transport(), slog.New(slog.DiscardHandler)
	return nil
}

// use has the consoles and syncs of all accounts call until ctx ends.
func use(ctx context.Context, accounts []*account) {
	var all sync.WaitGroup
	for _, a := range accounts {
		all.Go(func() { a.click(ctx) })
		client := &http.Client{Transport: a.sync}
		for range 16 {
			all.Go(func() {
				for ctx.Err() == nil {
					a.call(ctx, client, bySync)
				}
			})
		}
	}
	all.Wait()
}

// click sends the calls of a console, which never waits: ten a second on average.
func (a *account) click(ctx context.Context) {
	client := &http.Client{Transport: a.server.Transport()}
	for ctx.Err() == nil {
		select {
		case <-time.After(time.Duration(rand.ExpFloat64() * float64(100*time.Millisecond))):
			a.call(ctx, client, byConsole)
		case <-ctx.Done():
		}
	}
}

// call sends one call. The vendor records whether it was refused.
func (a *account) call(ctx context.Context, client *http.Client, by string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server.URL, http.NoBody)
	if err != nil {
		panic("share: the vendor's address: " + err.Error())
	}
	req.Header.Set(testserver.DefaultIDHeader, by)
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// since returns when a call came, from the beginning of the first window on.
func (a *account) since(r testserver.Arrival) time.Duration {
	return r.At + a.vendor.Start().Sub(a.vendor.Start().Truncate(window))
}

// windows returns how many windows have ended, but one at least.
func (a *account) windows() int { return max(int(time.Since(a.vendor.Start())/window), 1) }

// count returns how many calls of one of the two were granted, or were not, in so many windows.
func (a *account) count(by string, granted bool, windows int) int {
	return len(a.vendor.Arrivals().Filter(func(r testserver.Arrival) bool {
		return r.ID == by && r.Granted == granted && a.since(r) < time.Duration(windows)*window
	}))
}
