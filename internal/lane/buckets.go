package lane

import (
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A vendor may have several buckets behind one host, and name the one that an answer came from. The
// quota in such an answer applies only to calls of that bucket.

// A Kind says what a sub-lane is made for.
type Kind uint8

// The kinds of sub-lanes.
const (
	Existing Kind = iota // none is made
	Paused               // a refusal: it holds the pause, and learns what follows
	Bucket               // a bucket named by the vendor: it learns from its reports
	First                // an unknown route: one call departs until it is answered, or for a second
)

const (
	maxRoutes = 1000             // of a lane; beyond, the least recently used is dropped
	routeKept = 24 * time.Hour   // kept this long without a call
	flapping  = 10 * time.Minute // how long both buckets apply after a route named another one
	nameless  = 3                // answers without a name, after which the route counts as nameless
)

// Buckets are the buckets of a lane's routes, from its answers.
type buckets struct {
	mu     sync.Mutex
	routes map[string]*route
}

// A route is the known buckets of one route.
type route struct {
	names    [2]string        // as named last, and before that; "": none
	until    throttle.Instant // the previous one applies, too
	used     throttle.Instant
	nameless int // answers without a name, while there is none
}

// NamesBuckets reports whether an answer of the lane has named a bucket.
func (l *Lane) NamesBuckets() bool { return l.buckets.Load() != nil }

// BucketsOf returns the names of the buckets of a route's calls; "" is no bucket. Known is false if
// no answer has reported them yet.
func (l *Lane) BucketsOf(name string) (names [2]string, known bool) {
	b := l.buckets.Load()
	if b == nil {
		return names, true
	}
	now := l.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.routes[name]
	if r == nil || now.Sub(r.used) > routeKept {
		return names, false
	}
	if names = r.names; now >= r.until {
		names[1] = ""
	}
	return names, names[0] != "" || r.nameless >= nameless
}

// NoteBucket applies the bucket that an answer of the route named; "" if none.
func (l *Lane) NoteBucket(name, bucket string) {
	if bucket != "" && !l.NamesBuckets() {
		l.buckets.CompareAndSwap(nil, &buckets{routes: make(map[string]*route)})
	}
	b := l.buckets.Load()
	if b == nil {
		return
	}
	now := l.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.routes[name]
	if r == nil && len(b.routes) >= maxRoutes {
		oldest, at := "", throttle.Never
		for other, o := range b.routes {
			if o.used < at {
				oldest, at = other, o.used
			}
		}
		delete(b.routes, oldest)
	}
	if r == nil {
		r = &route{}
		b.routes[name] = r
	}
	r.used = now
	switch {
	case bucket == "":
		r.nameless++
	case r.names[0] == "":
		r.names[0] = bucket
	case r.names[0] != bucket:
		r.names, r.until = [2]string{bucket, r.names[0]}, now.Add(flapping)
	}
}

// OfBucket reports whether the lane is the sub-lane of a bucket.
func (l *Lane) OfBucket() bool { return l.sub != nil && l.sub.kind == Bucket }
