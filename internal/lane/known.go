package lane

import (
	"context"
	"math"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Recall makes a new course one that goes on with what was learned before.
func (c *Course) Recall(now throttle.Instant, m learn.Memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fleet != nil {
		c.say(learn.AppendMemory(nil, m))
		return
	}
	s := learn.New(c.setting)
	if s.Import(m); s.Mode == learn.Start {
		return
	}
	c.begun, c.state = true, s
	c.replan(now)
	c.told = c.state.Known(c.plan)
}

// Export returns what was learned, for a later course. It returns false if
// nothing is sure.
func (c *Course) Export() (learn.Memory, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		return learn.Memory{}, false
	}
	return c.state.Export()
}

// Known returns what was learned. The zero value says that nothing is sure.
func (c *Course) Known() learn.Known {
	if !c.steers.Load() {
		return learn.Known{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Known(c.plan)
}

// changed reports whether what is known is to be told: it differs by a tenth
// from what was told last, and that was told long enough ago.
func (c *Course) changed(now throttle.Instant) (bool, learn.Known) {
	k := learn.Known{}
	if c.begun && now.Sub(c.toldAt) >= tellEvery {
		k = c.state.Known(c.plan)
	}
	k.Probing = false // is no news
	if k == (learn.Known{}) || math.Abs(k.Rate-c.told.Rate) <= c.told.Rate/10 && (k.InFlight == 0) == (c.told.InFlight == 0) &&
		math.Abs(float64(k.InFlight-c.told.InFlight)) <= float64(c.told.InFlight)/10 {
		return false, k
	}
	c.told, c.toldAt = k, now
	return true, k
}

// tellEvery is the shortest time between two reports of one lane. A limit that
// changes is news, but the steps of a search are not.
const tellEvery = 5 * time.Second

// learned tells the log and the observer what was learned.
func (l *Lane) learned(ctx context.Context, k learn.Known) {
	l.observer.Learned(ctx, k)
	with := []any{"lane", l.key}
	if k.Rate > 0 {
		with = append(with, "per_second", math.Round(k.Rate*100)/100)
	}
	if k.InFlight > 0 {
		with = append(with, "in_flight", k.InFlight)
	}
	l.settings.Logger().Info("weir: a limit was learned from the server's answers", with...)
}
