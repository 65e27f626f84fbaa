// Share is a sync beside a console on the same account of a vendor. The vendor grants 100 calls in
// each 2 s, first come, first served. Weir knows nothing of the console, which sends about ten
// calls a second.
//
//	go run ./share
//
// Three accounts are used at the same time, each by a console and by a sync with 16 workers:
//
//   - The first sync takes whatever the vendor reports as left.
//   - The second one takes at most half of that, by [weir.Transport.Share].
//   - The third one has a limit configured that keeps half for others, at a vendor that reports
//     nothing.
//
// The vendor is part of the program, on loopback sockets. The program prints what each account was
// granted, and draws the vendor's own record into share.svg and share.png.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// quota is the account's limit in each window.
const (
	quota  = 100
	window = 2 * time.Second
)

var reported = []testserver.Style{testserver.XRateLimitDelta}

// kept is a limit that leaves half of the quota to others.
var kept = throttle.FixedWindow(quota, window).Keeping("50%")

var share = program.Drawing{
	Name:  "share",
	What:  "how long the accounts are used",
	Shown: program.Shown{For: 11 * time.Second, Out: "share"},
	Run:   run,
}

func main() { share.Main() }

func run(ctx context.Context, o program.Shown, stdout io.Writer) (chart.Picture, error) {
	accounts := []*account{
		{name: "weir.Transport{}", sync: &weir.Transport{}, styles: reported},
		{name: "weir.Transport{Share: 0.5}", sync: &weir.Transport{Share: 0.5}, styles: reported},
		{name: fmt.Sprintf("weir.Transport{Limits: %q}", kept), sync: &weir.Transport{Limits: []throttle.Limit{kept}}},
	}
	time.Sleep(time.Until(time.Now().Truncate(window).Add(window))) // the record begins with a window
	for _, a := range accounts {
		if err := a.open(); err != nil {
			return chart.Picture{}, err
		}
		defer a.server.Close()
	}
	fmt.Fprintf(stdout, "Each account is granted %d calls in %v. A console and a sync share it:\n\n", quota, window)
	use(ctx, accounts)
	windows := accounts[0].windows() // one that has not ended is left out
	for _, a := range accounts {
		fmt.Fprintf(stdout, "%-54s  sync %3d calls granted, console %3d granted, %2d refused\n",
			a.name, a.count(bySync, true, windows), a.count(byConsole, true, windows), a.count(byConsole, false, windows))
	}
	fmt.Fprintf(stdout, "in %d windows\n", windows)
	return picture(accounts, windows), nil
}
