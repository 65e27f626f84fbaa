package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A telling is what the vendor reports of a limit that is not configured.
type telling struct {
	name   string
	styles []testserver.Style
}

var tellings = []telling{
	{"bare", nil},
	{"seconds", []testserver.Style{testserver.RetryAfterSeconds}},
	{"ms", []testserver.Style{testserver.RetryAfterMillis}},
	{"x-ratelimit", []testserver.Style{testserver.XRateLimitEpoch, testserver.RetryAfterSeconds}},
	{"ietf", []testserver.Style{testserver.RateLimit, testserver.RetryAfterSeconds}},
	{"coarse", []testserver.Style{testserver.Coarse}},
}

// unknown is the unconfigured drain: by one process with as many workers, which shares nothing, and
// by the fleet.
func (b *bench) unknown(ctx context.Context) error {
	ideal := time.Duration(max(1, b.calls-vendorBurst)) * time.Second / vendorRate
	s := newSheet(b.out, fmt.Sprintf("%d calls, %d workers, a vendor of %d/s burst %d, of which nobody is told; ideal %.2f s; medians of %d",
		b.calls, drainers*drainWorkers, vendorRate, vendorBurst, ideal.Seconds(), b.runs), drainColumns...)
	for range b.runs {
		for _, tells := range tellings {
			if !b.tells(tells.name) {
				continue
			}
			d, err := b.drainOnce(ctx, alone, []int{b.calls}, tells.styles)
			if err != nil {
				return err
			}
			s.add(tells.name+", one process", d.figures(ideal)...)
			for _, demand := range b.demands {
				d, err := b.drainOnce(ctx, learning, shares(b.calls, drainers, demand), tells.styles)
				if err != nil {
					return err
				}
				s.add(fmt.Sprintf("%s, %d %s", tells.name, drainers, demand), d.figures(ideal)...)
			}
		}
	}
	s.close()
	return nil
}
