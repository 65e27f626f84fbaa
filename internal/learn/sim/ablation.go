package sim

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/internal/learn"
)

// Mechanisms are the names of the mechanisms of the learner, in the order of their bits.
var Mechanisms = []string{
	"covered", "windows", "trial", "slowly", "mute", "before", "block",
	"reported", "room", "near",
}

// Each calls play for the numbers below n, on all processors.
func Each(n int, play func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				play(i)
			}
		})
	}
	all.Wait()
}

// PlayTable plays rows without some mechanisms, each with a number of seeds.
func PlayTable(rows []Row, without learn.Mechanism, first uint64, seeds int) []Summary {
	sums := make([]Summary, len(rows))
	Each(len(rows), func(i int) {
		row, scores := rows[i], make([]Score, seeds)
		row.Run.Without = without
		for k := range scores {
			scores[k] = row.Play(first + uint64(k))
		}
		sums[i] = row.Summarize(scores)
	})
	return sums
}

// A Sample is the input for measuring a mechanism's worth: the table with a number of seeds, and
// random vendors of both kinds from a seed on.
type Sample struct {
	Rows  []Row
	Seeds int
	First uint64 // of the random vendors
	Draws int
}

// A Worth is the result of a sample.
type Worth struct {
	Missed   []string      // rows that miss their gate in the median
	Low      int           // random vendors served below Low
	Stuck    int           // of them below Stuck
	Early    int           // departures before a reported time
	Reported ReportedCount // vendors that report what is left
}

// Play plays the sample without some mechanisms.
func (s Sample) Play(without learn.Mechanism) (w Worth) {
	for _, sum := range PlayTable(s.Rows, without, 1, s.Seeds) {
		if len(sum.Gate) > 0 {
			w.Missed = append(w.Missed, sum.Row.Name)
		}
	}
	used, verdicts := make([]float64, s.Draws), make([]Verdict, s.Draws)
	early := make([]int, s.Draws)
	Each(s.Draws, func(i int) {
		d := Random(s.First + uint64(i))
		d.Run.Without = without
		var res Result
		used[i], res = d.Play()
		early[i] = res.Early
		d = RandomReporting(s.First + uint64(i))
		d.Run.Without = without
		verdicts[i] = d.judgeReporting(false)
	})
	for i, u := range used {
		if u < Low {
			w.Low++
		}
		if u < Stuck {
			w.Stuck++
		}
		w.Early += early[i]
		w.Reported = w.Reported.add(verdicts[i])
	}
	return w
}

// Beside returns a line that compares w with the result with all mechanisms on.
func (w Worth) Beside(all Worth) string {
	lost := slices.DeleteFunc(slices.Clone(w.Missed), func(name string) bool { return slices.Contains(all.Missed, name) })
	won := len(all.Missed) - (len(w.Missed) - len(lost))
	r, a := w.Reported, all.Reported
	return fmt.Sprintf("%3d rows lost, %d won; %+4d low, %+3d stuck, %+d early; reporting: %+4d with few 429s, %+4d well used, %+3d stuck; %s",
		len(lost), won, w.Low-all.Low, w.Stuck-all.Stuck, w.Early+r.Early-all.Early-a.Early,
		r.Few-a.Few, r.Most-a.Most, r.Stuck-a.Stuck, cmp.Or(strings.Join(lost, ", "), "-"))
}
