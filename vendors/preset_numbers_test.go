package vendors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/vendors"
)

// A number of all lanes also holds in the lanes of a route.
func TestPresetNumberOfAllLanesHoldsInRoutes(t *testing.T) {
	p := vendors.Slack()
	p.Numbers = append(p.Numbers, vendors.Number{Counts: "calls of any method", Most: 20, In: time.Minute})
	tr := p.Transport()
	limits := tr.LimitsFor(tr.Key(get("https://slack.com/api/chat.postMessage", "Authorization", "k")))
	if want := throttle.SlidingLog(20, time.Minute+time.Second); !slices.Contains(limits, want) {
		t.Errorf("limits of chat.postMessage are %v, want %v among them", limits, want)
	}
}

// Of several numbers at a time, the least holds.
func TestPresetKeepsTheLeastInFlight(t *testing.T) {
	p := vendors.GitHub()
	p.Numbers = append(p.Numbers, vendors.Number{Most: 50}, vendors.Number{Most: 300})
	if most := p.Transport().InFlight.Max; most != 50 {
		t.Errorf("InFlight.Max is %d, want 50", most)
	}
}
