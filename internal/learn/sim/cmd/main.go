// Command cmd plays the table of gates against the learner and prints it, the missed gates first.
// It can also draw random vendors, and switch off mechanisms of the learner to measure their worth.
//
//	go run ./internal/learn/sim/cmd -seeds 5
//	go run ./internal/learn/sim/cmd -row drain -seeds 1
//	go run ./internal/learn/sim/cmd -reporting 1000 -fresh
//	go run ./internal/learn/sim/cmd -without trial,block
//	go run ./internal/learn/sim/cmd -ablation 400 -seeds 3 -fresh
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/learn/sim"
)

func main() {
	seeds := flag.Int("seeds", 5, "seeds for each row")
	first := flag.Uint64("seed", 1, "the first seed")
	only := flag.String("row", "", "only rows whose name contains it")
	trace := flag.Int("trace", 0, "1: print refusals, 2: print every fact")
	fuzz := flag.Int("fuzz", 0, "draw so many random vendors instead")
	reporting := flag.Int("reporting", 0, "draw so many random vendors that report what is left instead")
	fresh := flag.Bool("fresh", false, "draw vendors that nothing is fitted to, and compare")
	without := flag.String("without", "", "mechanisms that are switched off, with commas: "+strings.Join(sim.Mechanisms, ", "))
	ablation := flag.Int("ablation", 0, "switch off one mechanism at a time, and play the table and so many random vendors of both kinds")
	flag.Parse()
	off := learn.Mechanism(0)
	for name := range strings.FieldsFuncSeq(*without, func(r rune) bool { return r == ',' }) {
		i := slices.Index(sim.Mechanisms, name)
		if i < 0 {
			fmt.Fprintf(os.Stderr, "no mechanism %q\n", name)
			os.Exit(2)
		}
		off |= 1 << i
	}
	if *trace > 0 {
		sim.TraceTo(os.Stdout, *trace > 1)
		runtime.GOMAXPROCS(1)
	}
	if n := max(*fuzz, *reporting); n > 0 {
		draw(*first, n, *reporting > 0, *fresh, off)
		return
	}
	begin := time.Now()
	var rows []sim.Row
	for _, row := range sim.Table() {
		if strings.Contains(row.Name, *only) {
			rows = append(rows, row)
		}
	}
	if *ablation > 0 {
		ablate(sim.Sample{Rows: rows, Seeds: *seeds, First: *first, Draws: *ablation}, *fresh)
		return
	}
	var hit, miss []sim.Summary
	for _, s := range sim.PlayTable(rows, off, *first, *seeds) {
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

// draw plays random vendors, and prints the worst served and the sum. For fresh ones it also plays
// as many of the development set, for comparison.
func draw(first uint64, n int, reporting, fresh bool, off learn.Mechanism) {
	begin := time.Now()
	sets := []uint64{first}
	if fresh {
		sets = append(sets, first-1+sim.FreshSeed)
	}
	var sums []string
	for i, seed := range sets {
		if reporting {
			var t sim.Reported
			for _, v := range judge(seed, n, off, sim.RandomReporting, sim.Draw.JudgeReporting) {
				t.Add(v)
			}
			if i == len(sets)-1 {
				t.Print(os.Stdout)
			}
			sums = append(sums, t.All.String())
			continue
		}
		var t sim.Tally
		for _, v := range judge(seed, n, off, sim.Random, sim.Draw.Judge) {
			t.Add(v)
		}
		if i == len(sets)-1 {
			t.Print(os.Stdout)
		}
		sums = append(sums, t.All.String())
	}
	for i, sum := range sums {
		fmt.Printf("seeds %d to %d: %s\n", sets[i], sets[i]+uint64(n)-1, sum)
	}
	fmt.Println(time.Since(begin).Round(time.Second))
}

// judge plays random vendors on all processors.
func judge(first uint64, n int, off learn.Mechanism, random func(uint64) sim.Draw, judge func(sim.Draw) sim.Verdict) []sim.Verdict {
	verdicts := make([]sim.Verdict, n)
	sim.Each(n, func(i int) {
		d := random(first + uint64(i))
		d.Run.Without = off
		verdicts[i] = judge(d)
	})
	return verdicts
}

// ablate switches off one mechanism at a time.
func ablate(s sim.Sample, fresh bool) {
	if fresh {
		s.First += sim.FreshSeed - 1
	}
	all := s.Play(0)
	fmt.Printf("all on: %d of %d rows missed, %d of %d random vendors low, %d stuck; %v\n",
		len(all.Missed), len(s.Rows), all.Low, s.Draws, all.Stuck, all.Reported)
	for i, name := range sim.Mechanisms {
		fmt.Printf("%-9s %s\n", name, s.Play(learn.Mechanism(1)<<i).Beside(all))
	}
}
