// Command cmd plays the table of gates against the learner and prints it, the
// missed gates first.
//
//	go run ./internal/learn/sim/cmd -seeds 5
//	go run ./internal/learn/sim/cmd -row drain -seeds 1
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// draw plays random vendors and prints those that were served worst. If nothing is
// traced, all processors play.
func draw(first uint64, n, trace int) {
	players := runtime.GOMAXPROCS(0)
	if trace > 0 {
		sim.TraceTo(os.Stdout, trace > 1)
		players = 1
	}
	begin := time.Now()
	verdicts := make([]sim.Verdict, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range players {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				verdicts[i] = sim.Random(first + uint64(i)).Judge()
			}
		})
	}
	all.Wait()
	var t sim.Tally
	for _, v := range verdicts {
		t.Add(v)
	}
	t.Print(os.Stdout)
	fmt.Printf("seeds %d to %d, %v\n", first, first+uint64(n)-1, time.Since(begin).Round(time.Second))
}
