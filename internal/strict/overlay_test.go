package strict_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/strict"
)

func TestOverlay(t *testing.T) {
	shared := &line{Places: 1, Share: 0.5}
	got := document{Name: "program", Line: line{MaxWait: time.Second, Places: 5}, Policy: shared, Ignored: func() {}}
	strict.Overlay(&got, document{Bytes: 9, Line: line{Places: 7}, Policy: &line{Places: 3}})
	if got.Ignored == nil {
		t.Error("Overlay removed a function")
	}
	got.Ignored = nil
	want := document{Name: "program", Bytes: 9, Line: line{MaxWait: time.Second, Places: 7}, Policy: &line{Places: 3, Share: 0.5}}
	if !reflect.DeepEqual(got, want) || shared.Places != 1 {
		t.Errorf("Overlay = %+v, want %+v, and the value behind the pointer unchanged", got, want)
	}
}

func TestDifferences(t *testing.T) {
	was := document{Name: "a", Line: line{MaxWait: time.Second}, Ignored: func() {}}
	is := document{Name: "b", Line: line{MaxWait: time.Minute}, Policy: &line{Places: 2}, Ignored: func() {}}
	var got []string
	for _, err := range strict.Differences(was, is) {
		got = append(got, err.Error())
	}
	want := []string{"line.maxWait: 1s cannot become 1m0s", "policy.places: 0 cannot become 2", "name: a cannot become b"}
	if !reflect.DeepEqual(got, want) || strict.Differences(was, was) != nil {
		t.Errorf("Differences = %q, want %q, and nil for equals", got, want)
	}
}
