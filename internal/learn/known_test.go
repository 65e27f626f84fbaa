package learn_test

import (
	"testing"

	"github.com/weirgo/weir/internal/learn"
)

func TestKnownIsWhatIsSure(t *testing.T) {
	spread := func(limit float64) (s learn.State) { // over the rest of a window
		s.Setting.Spread = true
		s.Ceilings[0] = learn.Ceiling{Key: 1, Limit: limit, Window: 60, Top: 90, V: 90, Ending: learn.Ending{Reset: at(60)}}
		return s
	}
	tests := map[string]struct {
		state learn.State
		want  learn.Known
	}{
		"nothing":           {learn.State{Places: learn.Places{Cap: 8}}, learn.Known{}},
		"calls in flight":   {learn.State{Mode: learn.Flight, Places: learn.Places{Cap: 9, Ceil: 16}}, learn.Known{InFlight: 16}},
		"a trial":           {learn.State{Mode: learn.Trial, Places: learn.Places{Cap: 9, Ceil: 16}}, learn.Known{}},
		"a rate":            {learn.State{Mode: learn.Rate, Search: learn.Search{W: 50, U: 0.02, Measured: true}}, learn.Known{Rate: 50}},
		"a wide estimate":   {learn.State{Mode: learn.Rate, Search: learn.Search{W: 50, U: 0.3, Measured: true}}, learn.Known{}},
		"a limit that rose": {learn.State{Mode: learn.Rate, Search: learn.Search{W: 50, R: 80, U: 0.02, Measured: true}}, learn.Known{}},
		"a limit above the configured one": {
			learn.State{Setting: learn.Setting{Configured: 20}, Mode: learn.Rate, Search: learn.Search{W: 17, R: 21, X: 4, U: 0.15, Measured: true}}, learn.Known{},
		},
		"perhaps above the configured one": {
			learn.State{Setting: learn.Setting{Configured: 20}, Mode: learn.Rate, Search: learn.Search{W: 17, R: 21, X: 2, U: 0.15, Measured: true}}, learn.Known{Rate: 17},
		},
		"never measured":   {learn.State{Mode: learn.Rate, Search: learn.Search{W: 50, U: 0.02}, Refusals: learn.Refusals{Episode: true}}, learn.Known{}},
		"a refusal":        {learn.State{Mode: learn.Rate, Search: learn.Search{W: 50, U: 0.02, Measured: true}, Refusals: learn.Refusals{Episode: true}}, learn.Known{Rate: 50}},
		"refusals, asking": {learn.State{Mode: learn.Rate, Search: learn.Search{W: 50, U: 0.02, Measured: true}, Refusals: learn.Refusals{Episode: true, Probing: true}}, learn.Known{Rate: 50, Probing: true}},
		"a window":         {spread(120), learn.Known{Rate: 2, Reported: true}},
		"a window alone":   {spread(0), learn.Known{}},
	}
	for name, test := range tests {
		if got := test.state.Known(test.state.Plan(at(1), 1)); got != test.want {
			t.Errorf("known of %s = %+v, want %+v", name, got, test.want)
		}
	}
}
