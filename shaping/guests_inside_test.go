package shaping

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Callers of a plan of one a month, which a thousand processes share, do not go soon.
func TestGuestWhoWaitsForYearsDoesNotGoSoon(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("")
	if err != nil {
		t.Fatal(err)
	}
	n, month := new(Junction), 30*24*time.Hour
	plan, account := n.NewRoster("plan", NewQueue(limiter)), n.NewRoster("account", NewQueue(limiter))
	plan.rates, plan.sharers, plan.line.count = []float64{1 / month.Seconds()}, 1000, 4
	j := &joint{rosters: []*Roster{plan, account}, seats: make([]waiter, 2), behind: true}
	j.seats[0].cost = month.Seconds()
	if j.soon(account, 0) {
		t.Error("the fifth caller is expected to go within milliseconds")
	}
}
