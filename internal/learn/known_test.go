package learn_test

import (
	"testing"

	"github.com/weirgo/weir/internal/learn"
)

func TestKnownIsWhatIsSure(t *testing.T) {
	tests := map[string]struct {
		state learn.State
		want  learn.Known
	}{
		"nothing":           {learn.State{Places: learn.Places{Cap: 8}}, learn.Known{}},
		"calls in flight":   {learn.State{Mode: learn.Flight, Places: learn.Places{Cap: 9, Ceil: 16}}, learn.Known{InFlight: 16}},
		"a trial":           {learn.State{Mode: learn.Trial, Places: learn.Places{Cap: 9, Ceil: 16}}, learn.Known{}},
		"a rate":            {learn.State{Mode: learn.Rate, W: 50, U: 0.02, Silence: 1}, learn.Known{Rate: 50}},
		"a wide estimate":   {learn.State{Mode: learn.Rate, W: 50, U: 0.3, Silence: 1}, learn.Known{}},
		"a limit that rose": {learn.State{Mode: learn.Rate, W: 50, R: 80, U: 0.02, Silence: 1}, learn.Known{}},
		"a limit above the configured one": {
			learn.State{Setting: learn.Setting{Configured: 20}, Mode: learn.Rate, W: 17, R: 21, X: 4, U: 0.15, Silence: 1}, learn.Known{},
		},
		"perhaps above the configured one": {
			learn.State{Setting: learn.Setting{Configured: 20}, Mode: learn.Rate, W: 17, R: 21, X: 2, U: 0.15, Silence: 1}, learn.Known{Rate: 17},
		},
		"never measured":   {learn.State{Mode: learn.Rate, W: 50, U: 0.02, Episode: true}, learn.Known{}},
		"a refusal":        {learn.State{Mode: learn.Rate, W: 50, U: 0.02, Silence: 1, Episode: true}, learn.Known{Rate: 50}},
		"refusals, asking": {learn.State{Mode: learn.Rate, W: 50, U: 0.02, Silence: 1, Episode: true, Probing: true}, learn.Known{Rate: 50, Probing: true}},
	}
	for name, test := range tests {
		if got := test.state.Known(test.state.Plan(at(1), 1)); got != test.want {
			t.Errorf("known of %s = %+v, want %+v", name, got, test.want)
		}
	}
}
