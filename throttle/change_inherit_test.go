package throttle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestInherit(t *testing.T) {
	second, minute := throttle.TokenBucket(10, time.Second, 1), throttle.FixedWindow(100, time.Minute)
	name := func(l throttle.Limit, name string) throttle.Limit {
		l.Name = name
		return l
	}
	unit := func(l throttle.Limit, unit string) throttle.Limit {
		l.Unit = unit
		return l
	}
	type limits = []throttle.Limit
	for _, c := range []struct {
		name     string
		old, new limits
		want     []int
	}{
		{"by length and algorithm, wherever they moved", limits{minute, second}, limits{second, minute}, []int{1, 0}},
		{"by place, where neither is the same", limits{throttle.SlidingLog(1, time.Hour), second}, limits{minute, throttle.LeakyBucket(1, time.Minute)}, []int{0, 1}},
		{"by place, among equals", limits{second, second}, limits{second, second}, []int{0, 1}},
		{"by a given name, though length and place are another's",
			limits{name(second, "read"), name(minute, "write")}, limits{name(second, "write"), name(minute, "read")}, []int{1, 0}},
		{"not from one that a given name claims",
			limits{name(second, "read"), minute}, limits{second, name(minute, "read")}, []int{1, 0}},
		{"a new name from what is left over", limits{name(second, "read"), minute}, limits{name(second, "read"), name(second, "write")}, []int{0, 1}},
		{"beside others from what they counted", limits{name(second, "read")}, limits{name(second, "read"), minute}, []int{0, 0}},
		{"beside others from what they counted alike",
			limits{name(second, "read"), name(minute, "write")}, limits{name(second, "read"), name(minute, "write"), minute}, []int{0, 1, 1}},
		{"beside others from the first that they counted, alike or not",
			limits{name(second, "read"), name(minute, "write")}, limits{name(second, "read"), name(minute, "write"), throttle.SlidingLog(1, time.Hour)}, []int{0, 1, 0}},
		{"from none of another unit", limits{second}, limits{unit(minute, "tokens"), second}, []int{-1, 0}},
		{"from none of another unit, whatever the name", limits{name(second, "a")}, limits{unit(name(second, "a"), "tokens")}, []int{-1}},
		{"from nothing", nil, limits{second}, []int{-1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, err := throttle.Resolve(c.old...)
			if err != nil {
				t.Fatal(err)
			}
			now, err := throttle.Resolve(c.new...)
			if err != nil {
				t.Fatal(err)
			}
			if got := throttle.Inherit(old, now); !slices.Equal(got, c.want) {
				t.Errorf("Inherit(%v, %v) = %v, want %v", c.old, c.new, got, c.want)
			}
		})
	}
}
