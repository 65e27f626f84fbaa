package redistest

import (
	"math/rand/v2"
	"time"
)

// A flap takes a proxy down and up again until it is stopped.
type flap struct {
	quit, done chan struct{}
}

// Flap takes the proxy down and up again in turn, beginning with down. While it is down, it refuses
// connections and has dropped the existing ones. Each spell lasts between a half and three halves
// of the period; the same seed gives the same spells.
func (p *Proxy) Flap(seed uint64, period time.Duration) {
	p.tb.Helper()
	p.turn.Lock()
	defer p.turn.Unlock()
	p.flap.stop()
	if p.flap = nil; p.ctx.Err() != nil {
		return
	}
	p.flap = &flap{quit: make(chan struct{}), done: make(chan struct{})}
	p.down()
	go p.flap.run(p, rand.New(rand.NewPCG(seed, 0)), period)
}

func (p *Proxy) down() {
	p.apply(closed, pass{})
	p.Drop()
}

func (f *flap) run(p *Proxy, random *rand.Rand, period time.Duration) {
	defer close(f.done)
	for up := true; ; up = !up {
		select {
		case <-time.After(period/2 + time.Duration(random.Int64N(int64(period)))):
		case <-f.quit:
			return
		}
		if up {
			p.apply(opened, pass{})
		} else {
			p.down()
		}
	}
}

// stop returns when the flap no longer changes the proxy. A nil flap is stopped.
func (f *flap) stop() {
	if f == nil {
		return
	}
	close(f.quit)
	<-f.done
}
