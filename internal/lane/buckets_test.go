package lane

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// laneOfBuckets returns a lane in a bubble.
func laneOfBuckets(t *testing.T) *Lane {
	t.Helper()
	s := newLanes()
	t.Cleanup(func() { _ = s.Close() })
	l, err := s.Enter("vendor.example")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRouteIsKnownByItsBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := laneOfBuckets(t)
		want := func(when string, first, second string, known bool) {
			t.Helper()
			if names, ok := l.BucketsOf("r"); names != [2]string{first, second} || ok != known {
				t.Errorf("%s: buckets %q, known %v, want %q and %q, %v", when, names, ok, first, second, known)
			}
		}
		want("where no bucket is named", "", "", true)
		l.NoteBucket("other", "a")
		want("where nothing is known of the route", "", "", false)
		for range 3 {
			l.NoteBucket("r", "")
		}
		want("after three answers without a name", "", "", true)
		l.NoteBucket("r", "a")
		l.NoteBucket("r", "b")
		want("after two names", "b", "a", true)
		time.Sleep(10 * time.Minute)
		want("ten minutes later", "b", "", true)
		time.Sleep(24*time.Hour + time.Second)
		want("a day later", "", "", false)
	})
}

func TestRoutesOfBucketsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := laneOfBuckets(t)
		for i := range 5000 {
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
				l.NoteBucket("kept", "a")
			}
			l.NoteBucket(strconv.Itoa(i), "a")
		}
		if n := len(l.buckets.Load().routes); n > maxRoutes {
			t.Errorf("%d routes are kept, want %d at most", n, maxRoutes)
		}
		if _, known := l.BucketsOf("kept"); !known {
			t.Error("the route that was used last is forgotten")
		}
	})
}
