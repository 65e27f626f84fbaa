// Learning shows how a lane finds a limit that is not configured: 32 workers call a vendor that
// accepts 50 calls a second with a burst of 10, and 100 a second from 15 s on. Weir is not
// configured with that, and the answers do not report it: the vendor refuses the others with a bare
// 429. The vendor is part of the program and listens on a loopback socket; nothing leaves the
// machine.
//
//	go run ./learning
//
// It prints a line a second, and Weir's log between them; then a table of what was
// served, and how much of what the vendor would have served that is. It draws the
// limit, the calls served and the refusals into learning.svg and learning.png, and
// takes 40 seconds; with -for it takes another time, and the limit changes after
// three eighths of that.
//
// It exits with 0, 1 when a call failed or a picture could not be written, 2 for a
// bad flag, and 130 after Ctrl-C, which ends it with the table and the picture of
// what happened so far.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
)

// weirClient is &http.Client{Transport: new(weir.Transport)}, with a connection to the vendor and a
// visible log.
func weirClient(base http.RoundTripper, log io.Writer) *http.Client {
	return &http.Client{Transport: &weir.Transport{Base: base, Logger: newLogger(log)}}
}

func main() {
	program.Main(run, os.Interrupt)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := program.ParseShown("learning", "how long the vendor is called; its limit changes after 3/8 of that",
		program.Shown{For: 40 * time.Second, Out: "learning"}, args, stdout)
	if err != nil {
		return program.Usage("learning", err, stderr)
	}
	fmt.Fprintf(stdout, `%d workers call through &http.Client{Transport: new(weir.Transport)}. The embedded
vendor accepts %.0f/s and a burst of %d, from %v on %.0f/s, and says nothing but 429.

`, workers, first.PerSecond(), first.Burst, change(o.For), second.PerSecond())
	r, err := learn(ctx, o.For, &lockedWriter{w: stdout})
	if err != nil {
		return program.Fail("learning", err, stderr)
	}
	writeTable(stdout, r)
	if err := writePicture(o.Out, r); err != nil {
		return program.Fail("learning", err, stderr)
	}
	fmt.Fprintf(stdout, "\npicture: %s\n", chart.Files(o.Out))
	return program.Code(ctx, r.failed > 0)
}
