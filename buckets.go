package weir

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
)

// A vendor may have several buckets behind one host, and name the one that paid for
// an answer: see headers.Signal. The quota of such an answer holds the calls of that
// bucket alone, in a sub-lane. Routes that name one bucket share its sub-lane. Once an
// answer has named one, a route whose answers named none sends one call at a time until
// it is answered, or for a second.

// named takes in the bucket that the answer names.
func (c *call) named(bucket string) {
	c.bucket = bucket
	if c.bucket != "" || c.lane.NamesBuckets() {
		c.lane.NoteBucket(c.part(headers.ScopeRoute), c.bucket)
	}
}

// enterBuckets enters the sub-lanes of the buckets that hold the call's route, or,
// if no answer has named them yet, the one in which its calls go one at a time.
func (c *call) enterBuckets() {
	if !c.lane.NamesBuckets() {
		return
	}
	route := c.part(headers.ScopeRoute)
	names, known := c.lane.BucketsOf(route)
	if !known {
		c.openSublane(route+" first", lane.First)
		return
	}
	for _, name := range names {
		c.enterBucket(name)
	}
	if l := c.t.lanes.FindSublane(c.lane, c.sublimited()); l != nil {
		c.enterSublane(l)
	}
}

// enterBucket enters the sub-lane of a bucket, and returns it; nil if there is none.
func (c *call) enterBucket(name string) *lane.Lane {
	if name == "" {
		return nil
	}
	part := c.part(headers.ScopeLane) + "bucket " + name + majorOf(c.req) + " credential " + credentialOf(c.req)
	return c.openSublane(part, lane.Bucket)
}

// openSublane enters a sub-lane, made on first use, and returns it; nil if there are
// too many.
func (c *call) openSublane(part string, kind lane.Kind) *lane.Lane {
	l := c.t.lanes.FindSublane(c.lane, part)
	if l == nil {
		l = c.t.lanes.OpenSublane(c.lane, part, kind)
	}
	if l != nil {
		c.enterSublane(l)
	}
	return l
}

// concernedBucket returns the sub-lane that a refusal concerns whose answer names a
// bucket: the bucket's, if its quota is spent or the answer reports nothing of it; if something
// is left, and the refusal concerns the route, another limit of the route refused. It
// is nil if the refusal concerns more than that, or less.
func (c *call) concernedBucket(signal *headers.Signal) *lane.Lane {
	spent := len(signal.Quotas) == 0 && signal.Scope == headers.ScopeRoute
	for _, q := range signal.Quotas {
		spent = spent || q.HasRemaining && q.Remaining < 1
	}
	switch {
	case c.bucket == "", signal.Scope != headers.ScopeRoute && (signal.Scope != headers.ScopeUnknown || !spent):
		return nil
	case spent:
		return c.enterBucket(c.bucket)
	default:
		return c.openSublane(c.sublimited(), lane.Paused)
	}
}

// sublimited is the part of the lane that another limit of one route holds.
func (c *call) sublimited() string { return c.part(headers.ScopeRoute) + majorOf(c.req) + " sublimit" }

// majorWords are what Discord's buckets are for each of: one channel's quota is not
// another's.
var majorWords = [...]string{"channels", "guilds", "webhooks"}

// majorOf returns a hash of the path segment for which a bucket exists of its own; ""
// if there is none.
func majorOf(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	segments := strings.Split(req.URL.Path, "/")
	for i, s := range segments[:len(segments)-1] {
		for _, word := range majorWords {
			if s == word {
				return " " + strconv.FormatUint(maphash.String(seed, segments[i+1]), 16)
			}
		}
	}
	return ""
}
