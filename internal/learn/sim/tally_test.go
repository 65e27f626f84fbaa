package sim

import (
	"strings"
	"testing"
)

func TestTallyCountsByGroup(t *testing.T) {
	steady := Draw{Rate: 10, Run: Scenario{Vendor: vendor(bucket(10, 1e9, 1)), Style: RetrySecs}}
	up := steady
	up.Run.Changes = []Change{becomes(1e9, bucket(20, 1e9, 2))}
	var tally Tally
	for _, v := range []Verdict{
		{Draw: steady, Used: 0.9, Known: 1},
		{Draw: steady, Used: 0.5, Known: 0.6},
		{Draw: up, Used: 0.2, Known: 1, Early: 3},
	} {
		tally.Add(v)
	}
	if want := (Count{N: 3, Low: 2, Stuck: 1}); tally.All != want {
		t.Errorf("all = %+v, want %+v", tally.All, want)
	}
	if want := (Count{N: 3, Low: 1, Stuck: 1}); tally.Beside != want {
		t.Errorf("beside a client that knows = %+v, want %+v", tally.Beside, want)
	}
	var out strings.Builder
	tally.Print(&out)
	for _, want := range []string{
		"    1 of     2 below 0.8 ( 50.0 %),   0 below 0.3: together time, bucket, steady\n",
		"    1 of     1 below 0.8 (100.0 %),   1 below 0.3: change up\n",
		"3 departures before a reported time\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
