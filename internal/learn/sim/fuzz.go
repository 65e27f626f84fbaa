package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// A Draw is a random vendor, the connection to it and the demand.
type Draw struct {
	Seed uint64
	Run  Scenario
	Rate float64 // calls per second that could be served at the end
}

// Random draws a scenario. The last disturbance is followed by 30 seconds, three windows or a
// hundred calls, whichever is longest, and then by the judged time.
func Random(seed uint64) Draw {
	rng := rand.New(rand.NewPCG(seed, 0x66757a7a))
	logUniform := func(lo, hi float64) float64 { return lo * math.Exp(rng.Float64()*math.Log(hi/lo)) }
	var d Draw
	d.Seed = seed
	s := &d.Run
	s.Style = styles[rng.IntN(len(styles))]
	s.Service = time.Duration(logUniform(1, 200) * 1e6)
	s.Exponential = rng.IntN(2) == 0
	s.Way = time.Duration(logUniform(0.2, 50) * 1e6)
	s.Jitter = 0.1 + 0.7*rng.Float64()
	s.Workers = int(logUniform(8, 128))
	rule := func() Rule {
		windows := []time.Duration{1, 5, 10, 30, 60, 300, 900}
		switch k := Kind(rng.IntN(6)); k {
		case Bucket:
			rate := logUniform(0.1, 1000)
			return Rule{Kind: k, Permits: max(1, int(rate*60)), Per: time.Minute, Burst: max(1, int(logUniform(1, 2*rate+2)))}
		case Flight:
			return Rule{Kind: k, Permits: int(logUniform(2, 64))}
		default:
			w := windows[rng.IntN(len(windows))] * time.Second
			return Rule{Kind: k, Permits: int(logUniform(5, min(3000, 500*w.Seconds()))), Per: w}
		}
	}
	s.Vendor.Rules = []Rule{rule()}
	if rng.IntN(5) == 0 {
		s.Vendor.Rules = append(s.Vendor.Rules, rule())
	}
	s.Vendor.RefusalsCount = rng.IntN(12) == 0
	if rng.IntN(20) == 0 {
		s.Vendor.Block = time.Duration(logUniform(1, 60) * 1e9)
	}
	rate, settle := d.capacity(s.Vendor)
	if rng.IntN(2) == 0 {
		v := s.Vendor
		v.Rules = append([]Rule(nil), v.Rules...)
		for i := range v.Rules {
			f := logUniform(0.2, 5)
			v.Rules[i].Permits = max(1, int(float64(v.Rules[i].Permits)*f))
			if v.Rules[i].Kind == Bucket {
				v.Rules[i].Burst = max(1, int(float64(v.Rules[i].Burst)*f))
			}
		}
		at := settle + time.Duration(rng.Float64()*float64(settle))
		s.Changes = []Change{{At: at, Vendor: &v}}
		var after time.Duration
		before := rate
		rate, after = d.capacity(v)
		after = max(after, time.Duration(300/before*1e9))
		s.From = at + after
		settle = after
	} else {
		s.From = settle
	}
	s.Until = s.From + settle
	d.Rate = rate
	return d
}

// capacity returns what the vendor would serve to a client that knew it, and the time for learning
// it.
func (d *Draw) capacity(v Vendor) (rate float64, settle time.Duration) {
	trip := d.Run.Service.Seconds() + 2*d.Run.Way.Seconds()*math.Exp(d.Run.Jitter*d.Run.Jitter/2)
	rate = float64(d.Run.Workers) / trip
	settle = 30 * time.Second
	for _, r := range v.Rules {
		if r.Kind == Flight {
			rate = min(rate, float64(r.Permits)/trip)
			continue
		}
		rate = min(rate, r.PerSecond())
		if r.Kind != Bucket {
			settle = max(settle, 3*r.Per)
		}
	}
	return rate, max(settle, time.Duration(100/rate*1e9), 3*v.Block)
}

// Play runs the draw and returns the share of the possible calls that was served.
func (d Draw) Play() (used float64, res Result) {
	res = Run(d.Run, d.Seed)
	return float64(res.Served) / (d.Rate * (d.Run.Until - d.Run.From).Seconds()), res
}

// Known returns the served share of the possible calls for a client that knows the limits. It keeps
// an even pace below them and obeys the times of refusals: the best of five paces. It is less than
// 1 if calls bunch on the way more than the vendor bears, or if a refusal asks for a longer wait
// than was exceeded.
func (d Draw) Known() (used float64) {
	s := d.Run
	for _, c := range s.Changes {
		s.Vendor = *c.Vendor
	}
	s.Changes = nil
	most := 0
	for _, r := range s.Vendor.Rules {
		if r.Kind == Flight && (most == 0 || r.Permits < most) {
			most = r.Permits
		}
	}
	for _, f := range [...]float64{1, 0.97, 0.9, 0.8, 0.6} {
		s.Knows = &learn.Plan{Rate: f * d.Rate, Most: most}
		if most > 0 && f == 1 {
			s.Knows.Rate = 0
		}
		res := Run(s, d.Seed)
		used = max(used, float64(res.Served)/(d.Rate*(s.Until-s.From).Seconds()))
	}
	return used
}

// String describes the draw on one line.
func (d Draw) String() string {
	s := d.Run
	text := fmt.Sprintf("seed %d %v service %v way %v jitter %.1f workers %d", d.Seed, s.Style, s.Service.Round(time.Millisecond), s.Way.Round(100*time.Microsecond), s.Jitter, s.Workers)
	show := func(v Vendor) {
		for _, r := range v.Rules {
			text += fmt.Sprintf(" [%v]", r)
		}
	}
	show(s.Vendor)
	if s.Vendor.RefusalsCount {
		text += " counts"
	}
	if s.Vendor.Block > 0 {
		text += fmt.Sprintf(" block %v", s.Vendor.Block.Round(time.Second))
	}
	for _, c := range s.Changes {
		text += fmt.Sprintf(" -> at %v", c.At.Round(time.Second))
		show(*c.Vendor)
	}
	return text + fmt.Sprintf(" could %.3g/s from %v to %v", d.Rate, s.From.Round(time.Second), s.Until.Round(time.Second))
}
