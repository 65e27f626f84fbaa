package weir

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/throttle"
)

// A refusal may concern less than a lane: a route, a credential, or, in the
// overflow lane, one key. It then pauses a sub-lane, for which requests of the same
// route, credential or key wait together with their lanes.

// divided reports whether sub-lanes may concern the call. Most lanes have none.
func (c *call) divided() bool {
	return len(c.visits) > 0 || c.lane.NamesBuckets() || c.lane.HasSublanes()
}

// A part is a part of a lane for which there may be a sub-lane.
type part struct {
	name string
	kind lane.Kind
}

// parts appends to all the parts of its lane to which the call belongs. Its buckets are those that
// hold its route. If no answer has named them yet, the route's calls go one at a time.
func (c *call) parts(all []part) []part {
	if c.lane.NamesBuckets() {
		route := c.part(headers.ScopeRoute)
		names, known := c.lane.BucketsOf(route)
		if !known {
			all = append(all, part{route + " first", lane.First})
		} else {
			all = append(all, part{c.sublimited(), lane.Existing})
		}
		for _, name := range names {
			if name != "" {
				all = append(all, part{c.bucketPart(name), lane.Bucket})
			}
		}
	}
	if !c.lane.HasSublanes() {
		return all
	}
	for _, name := range [...]string{c.part(headers.ScopeRoute), c.part(headers.ScopeCredential), c.routeAndCredential(), c.part(headers.ScopeLane)} {
		if name != "" {
			all = append(all, part{name, lane.Existing})
		}
	}
	return all
}

// mostParts is the most parts of its lane to which a call belongs.
const mostParts = 7

// enterSublanes enters the sub-lanes that concern the call. If it makes none, it enters those that
// there are.
func (c *call) enterSublanes(makes bool) {
	var room [mostParts]part
	for _, p := range c.parts(room[:0]) {
		if !makes {
			p.kind = lane.Existing
		}
		c.openSublane(p.name, p.kind)
	}
}

// leaveSublanes leaves the sub-lanes that the call has entered.
func (c *call) leaveSublanes() {
	for i := range c.visits {
		c.visits[i].lane.Leave(&c.turn)
	}
}

// sublaneHolds reports whether a sub-lane that the call has passed is paused, or one was made since:
// its calls depart as it learns, even without a pause.
func (c *call) sublaneHolds() bool {
	c.enterSublanes(true)
	for _, v := range c.visits {
		if !v.passed || v.lane.Queue.State().Paused > 0 {
			return true
		}
	}
	return false
}

// concerned returns the lane or sub-lane that the last refusal concerns.
func (c *call) concerned(status int, signal *headers.Signal) *lane.Lane {
	if l := c.concernedBucket(signal); l != nil {
		return l
	}
	part := c.part(signal.Scope)
	if signal.Scope == headers.ScopeCredential && c.oneCredential() {
		part = c.part(headers.ScopeLane)
	}
	if c.doubtful(status, signal) {
		part = c.part(headers.ScopeRoute)
		if status == http.StatusForbidden {
			part = c.routeAndCredential()
		}
	}
	if part == "" {
		return c.lane
	}
	if l := c.openSublane(part, lane.Paused); l != nil {
		return l
	}
	return c.lane
}

// doubtful reports whether it is unclear that a refusal concerns the whole lane. That
// is so if it closes the lane without a scope, and no other route of the key is closed
// in the same way. One route may be in maintenance, or forbidden to one credential,
// while all others are served.
func (c *call) doubtful(status int, signal *headers.Signal) bool {
	if signal.Scope != headers.ScopeUnknown || c.refusedFor <= c.t.maxPause() ||
		status != http.StatusServiceUnavailable && status != http.StatusForbidden {
		return false
	}
	return c.lane.Doubtful(c.key, routeOf(c.req), c.refusedFor)
}

// part returns the name of the sub-lane that a refusal of the request concerns,
// and "" if it concerns the whole lane. In the lane that many keys share, a
// refusal concerns one key.
func (c *call) part(of headers.Scope) string {
	key := ""
	if c.lane.Shared {
		key = lane.PartOfKey(c.key)
	}
	switch of {
	case headers.ScopeRoute:
		return key + "route " + cmp.Or(c.req.Method, http.MethodGet) + " " + routeOf(c.req)
	case headers.ScopeCredential:
		return key + "credential " + credentialOf(c.req)
	default:
		return key
	}
}

// routeAndCredential returns the name of the sub-lane for one route with one
// credential.
func (c *call) routeAndCredential() string {
	return c.part(headers.ScopeRoute) + " credential " + credentialOf(c.req)
}

// A vendor may have several buckets behind one host, and name the one that paid for an
// answer: see headers.Signal. The quota of such an answer holds the calls of that
// bucket alone, in a sub-lane. Routes that name one bucket share its sub-lane. Once an
// answer has named one, routes with no named bucket send one call at a time, until it
// is answered or for a second.

// bucketPart is the part of the lane that a bucket holds.
func (c *call) bucketPart(name string) string {
	return c.part(headers.ScopeLane) + "bucket " + name + majorOf(c.req) + " credential " + credentialOf(c.req)
}

// openSublane enters a sub-lane, made on first use unless the kind is Existing, and returns it. It
// returns nil if there is no such sub-lane, or no room for one.
func (c *call) openSublane(part string, kind lane.Kind) *lane.Lane {
	l := c.t.lanes.Sublane(c.lane, part, kind)
	switch {
	case l == nil:
	case slices.ContainsFunc(c.visits, func(v visit) bool { return v.lane == l }):
		l.Leave(nil) // once is enough
	default:
		c.visits = append(c.visits, visit{lane: l})
	}
	return l
}

// credentials are those of the calls of a lane that processes share and that learns, if its vendor
// counts by credential. As long as there is one, its refusals concern the lane, so that all processes
// obey them at once: a process enters a sub-lane only with a refusal of its own.
type credentials struct {
	last    atomic.Uint64 // hash of the last call's; zero: there was no call
	changed atomic.Int64  // instant at which a call had another than the one before; zero: none had
}

// renewed is after what time without another credential there is one: an old one was renewed.
const renewed = 10 * time.Minute

// few calls are no proof of one credential: of two equally busy ones, the first ten calls all have
// the same once in 512 times.
const few = 10

// oneCredential reports whether the lane's calls have one credential, of those that meet has noted.
// The first few calls do not show it if the last refusal asked for longer than most callers wait: a
// new process would close the lane of many for all processes.
func (c *call) oneCredential() bool {
	o := observerOf(c.lane)
	changed := throttle.Instant(o.met.changed.Load())
	switch {
	case o.met.last.Load() == 0:
		return false
	case changed == 0:
		return c.refusedFor <= DefaultMaxPause || o.calls.Load() >= few
	}
	return c.lane.Now().Sub(changed) > renewed
}

// meet notes the credential of the call.
func (c *call) meet() {
	if d := c.dialect(); d == nil || d.Scope != headers.ScopeCredential {
		return
	}
	met, own := &observerOf(c.lane).met, credentialHash(c.req)
	if met.last.Load() == own {
		return
	}
	if last := met.last.Swap(own); last != 0 && last != own { // first calls may come together
		met.changed.Store(int64(c.lane.Now()))
	}
}

// concernedBucket returns the sub-lane that a refusal concerns if its answer names a
// bucket. It is the bucket's if its quota is spent, or if the answer does not report
// it. If something is left, and the refusal concerns the route, another limit of the
// route refused. It is nil if the refusal concerns more than that, or less.
func (c *call) concernedBucket(signal *headers.Signal) *lane.Lane {
	spent := len(signal.Quotas) == 0 && signal.Scope == headers.ScopeRoute
	for _, q := range signal.Quotas {
		spent = spent || q.HasRemaining && q.Remaining < 1
	}
	switch {
	case c.bucket == "", signal.Scope != headers.ScopeRoute && (signal.Scope != headers.ScopeUnknown || !spent):
		return nil
	case spent:
		return c.openSublane(c.bucketPart(c.bucket), lane.Bucket)
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
				sum := sha256.Sum256([]byte(segments[i+1]))
				return " " + hex.EncodeToString(sum[:8])
			}
		}
	}
	return ""
}
