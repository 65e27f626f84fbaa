// Command cmd plays the table of gates against the learner and prints it, the
// missed gates first.
//
//	go run ./internal/learn/sim/cmd -seeds 5
//	go run ./internal/learn/sim/cmd -row drain -seeds 1
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/learn/sim"
)

func main() {
	seeds := flag.Int("seeds", 5, "seeds for each row")
	first := flag.Uint64("seed", 1, "the first seed")
	only := flag.String("row", "", "only rows whose name contains it")
	trace := flag.Int("trace", 0, "1: print refusals, 2: print every fact")
	timing := flag.Bool("timing", false, "print what each row took")
	fuzz := flag.Int("fuzz", 0, "draw so many random vendors instead")
	flag.Parse()
	if *fuzz > 0 {
		draw(*first, *fuzz, *trace)
		return
	}
	if *trace > 0 {
		sim.TraceTo(os.Stdout, *trace > 1)
	}
	begin := time.Now()
	var hit, miss []sim.Summary
	for _, row := range sim.Table() {
		if !strings.Contains(row.Name, *only) {
			continue
		}
		at := time.Now()
		var scores []sim.Score
		for i := range *seeds {
			scores = append(scores, row.Play(*first+uint64(i)))
		}
		s := row.Summarize(scores)
		if *timing {
			fmt.Println(row.Name, time.Since(at))
		}
		if len(s.Gate) > 0 {
			miss = append(miss, s)
		} else {
			hit = append(hit, s)
		}
	}
	fmt.Printf("seeds %d to %d, median;worst\n%s\n", *first, *first+uint64(*seeds)-1, sim.Header)
	for _, s := range append(miss, hit...) {
		fmt.Println(s)
	}
	fmt.Printf("%d missed, %d hit, %v\n", len(miss), len(hit), time.Since(begin).Round(time.Millisecond))
}

// draw plays random vendors and prints those that were served worst.
func draw(first uint64, n, trace int) {
	if trace > 0 {
		sim.TraceTo(os.Stdout, trace > 1)
	}
	type outcome struct {
		used  float64
		known float64
		res   sim.Result
		draw  sim.Draw
	}
	var all []outcome
	begin := time.Now()
	low, stuck, early, lowKnown, stuckKnown := 0, 0, 0, 0, 0
	groups := map[string][2]int{}
	for i := range n {
		d := sim.Random(first + uint64(i))
		used, res := d.Play()
		res.Bins = nil // they would fill the memory
		known := 1.0
		if used < 0.8 {
			known = d.Known()
			if used < 0.8*known {
				lowKnown++
			}
			if used < 0.3*known {
				stuckKnown++
			}
		}
		all = append(all, outcome{used, known, res, d})
		bad := 0
		if used < 0.8 {
			low, bad = low+1, 1
		}
		if used < 0.3 {
			stuck++
		}
		early += res.Early
		g := d.Group()
		groups[g] = [2]int{groups[g][0] + bad, groups[g][1] + 1}
	}
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.used, b.used) })
	for _, o := range all[:min(n, max(25, low))] {
		fmt.Printf("%.3f of %.3f refused %d: %v\n", o.used, o.known, o.res.Refused, o.draw)
	}
	names := slices.SortedFunc(maps.Keys(groups), func(a, b string) int { return groups[b][0] - groups[a][0] })
	for _, name := range names {
		if g := groups[name]; g[0] > 0 {
			fmt.Printf("%4d of %4d below 0.8: %s\n", g[0], g[1], name)
		}
	}
	fmt.Printf("seeds %d to %d: %d below 0.8 (%.1f %%), %d below 0.3, median %.3f, %d departures before a told time, %v\n",
		first, first+uint64(n)-1, low, 100*float64(low)/float64(n), stuck, all[n/2].used, early, time.Since(begin).Round(time.Millisecond))
	fmt.Printf("beside a client that knows: %d below 0.8 (%.1f %%), %d below 0.3\n", lowKnown, 100*float64(lowKnown)/float64(n), stuckKnown)
}
