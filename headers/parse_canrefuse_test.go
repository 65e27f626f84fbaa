package headers_test

import (
	"testing"

	"github.com/weirgo/weir/headers"
)

func TestCanRefuseLeavesOutOnlyWhatNeverRefuses(t *testing.T) {
	kraken, ok := headers.Lookup("Kraken") // refuses in the body of a 200
	if !ok {
		t.Fatal("no dialect of Kraken")
	}
	for _, c := range []struct {
		name    string
		dialect *headers.Dialect
		status  int
		want    bool
	}{
		{"generic success", nil, 200, false},
		{"generic redirect", nil, 302, false},
		{"generic not found", nil, 404, true},
		{"generic refusal", nil, 429, true},
		{"status of a dialect", &headers.Dialect{Refuses: []int{202}}, 202, true},
		{"another status of it", &headers.Dialect{Refuses: []int{202}}, 200, false},
		{"field of a dialect", &headers.Dialect{Fields: []headers.Field{{Name: "X-Throttled", Fact: headers.FactRefusal}}}, 200, true},
		{"body of a dialect", kraken, 200, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.dialect.CanRefuse(c.status); got != c.want {
				t.Errorf("CanRefuse(%d) = %v, want %v", c.status, got, c.want)
			}
		})
	}
}
