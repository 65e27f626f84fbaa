// Command drain sends 2,000 calls from 64 workers, as fast as they go, to a vendor. That allows 200
// calls a second and 20 at once, and answers 429 beyond. It prints how long it took and
// what it cost.
//
//	go -C internal/peerbench run ./drain                  # Weir, told the limit
//	go -C internal/peerbench run ./drain -peers -unknown  # and everybody else
//	go -C internal/peerbench run ./drain -rate 250        # Weir, told a wrong one
//	go -C internal/peerbench run ./drain -unknown -says bare
//
// The vendor takes 5 ms per call. By default (see -says) it reports its state as many gateways do.
// Every answer has the whole permits left and the whole seconds until more, at full speed "0
// remaining, 1 second" on nearly every success. A refusal has Retry-After in whole seconds.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	d := drain{vendorRate: 200, vendorBurst: 20, service: 5 * time.Millisecond}
	flag.IntVar(&d.calls, "n", 2000, "calls")
	flag.IntVar(&d.workers, "workers", 64, "workers")
	runs := flag.Int("runs", 5, "runs of each contender")
	k := told{peerBurst: d.vendorBurst}
	flag.IntVar(&k.rate, "rate", d.vendorRate, "calls a second that limiters are told")
	flag.IntVar(&k.burst, "burst", 18, "burst that Weir is told: the vendor's, less what its permit tolerance may add")
	peers := flag.Bool("peers", false, "other libraries too")
	unknown := flag.Bool("unknown", false, "Weir with nothing configured too")
	word := flag.String("says", "coarse", "how the vendor says how it stands: coarse, bare, seconds, ms, xratelimit or ietf")
	flag.Parse()
	styles, err := styleOf(*word)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	d.says = styles
	all := k.weirs(*unknown)
	if *peers {
		all = append(all, k.peers()...)
	}
	if err := compare(os.Stdout, d, all, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
