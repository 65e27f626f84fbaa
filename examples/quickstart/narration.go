package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/weirgo/weir/examples/internal/program"
)

// lateCalls is how many permits the tolerance may add to a burst: a call may
// leave up to two intervals after its instant.
const lateCalls = 2

const aboutPlain = `plain: &http.Client{}
After a 429 the caller sleeps for as long as Retry-After says and tries again,
three times in all, as many programs do.
`

const aboutLearning = `learning: &http.Client{Transport: new(weir.Transport)}
The caller's code is the same. Weir finds the limit by what the answers say is
left; from bare 429s it finds one too, as "go run ./learning" shows.
`

// aboutLimited names the line that changed, and the reason for its numbers.
func aboutLimited(o options) string {
	return fmt.Sprintf(`limited: &http.Client{Transport: &weir.Transport{
    Limits: []throttle.Limit{%s},
}}
The caller's code is the same.%s
`, program.Constructor(o.limit), why(o))
}

// why explains how the limit follows from the vendor's, if that is known.
func why(o options) string {
	if o.url != "" {
		return " In any W seconds Weir sends at most\nrate x W + burst calls, and two more: keep that below what the vendor accepts."
	}
	l := o.limit
	if l.PerSecond() > vendorLimit.PerSecond() || l.Burst+lateCalls > vendorLimit.Burst {
		return " Its limit is above what the vendor\naccepts for sure, so expect some 429s."
	}
	return fmt.Sprintf(` Why a burst of %d: in any W seconds the
vendor accepts %g x W + %d calls. Weir sends at most %g x W + %d, and up to %d
more because a call may leave a moment after its instant (the permit tolerance).`,
		l.Burst, vendorLimit.PerSecond(), vendorLimit.Burst, l.PerSecond(), l.Burst, lateCalls)
}

// introduce prints what is about to happen.
func introduce(w io.Writer, o options) {
	if o.url == "" {
		fmt.Fprintf(w, "An embedded vendor accepts %g calls/s with a burst of %d and answers the others\n"+
			"with 429 and Retry-After. Each answer has RateLimit fields: what is left, and\n"+
			"until when. Each client sends it %d calls from %d workers.\n",
			vendorLimit.PerSecond(), vendorLimit.Burst, o.calls, o.workers)
		return
	}
	fmt.Fprintf(w, "%d calls from %d workers to %s. Ctrl-C ends this with what it has.\n", o.calls, o.workers, hostOf(o.url))
}

// hostOf returns the part of an address without secrets.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
