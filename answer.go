package weir

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// observe reads the answer into signal, which is zero, and reports it to the lane.
func (c *call) observe(resp *http.Response, err error, signal *headers.Signal) {
	c.paused, c.refusedFor, c.about, c.bucket, c.byRoute, c.inHand = false, 0, nil, "", false, resp
	if err != nil {
		if c.flying {
			c.landed(false, nil)
		}
		return
	}
	observerOf(c.lane).server.answered(resp)
	acted := c.read(resp, signal)
	if signal.Throttled {
		c.countRefusal(resp, signal)
		// The refusal comes first, because a call that lands lets the next one go. If
		// waiting does not help this request, a reported time still holds for the lane.
		if _, waits := signal.Wait(); !acted && (waits || !signal.Permanent) {
			c.refused(resp.StatusCode, signal)
		}
	}
	c.landed(!signal.Throttled && resp.StatusCode < http.StatusInternalServerError, signal.Quotas)
}

// read reads into signal, which is zero, what an answer says of quotas, if it may be a
// refusal. The body may come slowly, so a time that the header states is acted on before
// the body is waited for. Acted is true if the body then had nothing to add.
func (c *call) read(resp *http.Response, signal *headers.Signal) (acted bool) {
	dialect := c.dialect()
	refuses, quotas := dialect.CanRefuse(resp.StatusCode), c.lane.Course.Learns() || c.t.WaitForReset
	if !refuses && !quotas {
		return false
	}
	var now time.Time
	if refuses { // the header and the body are read as of one instant
		now = time.Now()
	}
	var more bool
	*signal, more = dialect.ParseHeader(resp, now)
	if c.lanes > 1 {
		c.about = c.lanesNamed(signal)
	}
	if quotas && c.about == nil {
		if c.bucket = signal.Bucket; c.bucket != "" || c.lane.NamesBuckets() {
			c.lane.NoteBucket(c.part(headers.ScopeRoute), c.bucket)
		}
	}
	c.byRoute = quotas && c.about == nil && c.bucket == "" && dialect != nil && dialect.Scope == headers.ScopeRoute
	if more && refuses {
		c.believe(signal)
		first := *signal
		if _, waits := first.Wait(); waits && first.Throttled && (c.lanes < 2 || c.about != nil) { // else the body may name the lane
			c.refused(resp.StatusCode, &first)
			acted = true
		}
		*signal = dialect.Parse(resp, now)
		if c.lanes > 1 && !acted {
			c.about = c.lanesNamed(signal)
		}
		acted = acted && signal.RetryAfter == first.RetryAfter && signal.Scope == first.Scope
	}
	c.believe(signal)
	c.forbidden = c.forbidden || signal.Reason == headers.Reason403 && signal.RetryAfter == 0
	return acted
}

// dialect returns the dialect that the call's server speaks.
func (c *call) dialect() *headers.Dialect { return observerOf(c.lane).dialect(c.req) }

// dialect returns the dialect that the server speaks to which a request goes.
func (o *observer) dialect(req *http.Request) *headers.Dialect {
	if o.t.Dialect != nil {
		return o.t.Dialect
	}
	return o.server.dialect(req, &o.t.spoken)
}

// believe takes a doubtful refusal out of the signal. A second 403 whose only sign of a
// refusal is a quota counts as none. The request is then forbidden, and the server
// reports the quota on every response.
func (c *call) believe(signal *headers.Signal) {
	if c.forbidden && signal.Reason == headers.Reason403 && signal.RetryAfter == 0 {
		signal.Throttled, signal.NotProcessed, signal.Reason, signal.Scope = false, false, "", headers.ScopeUnknown
	}
}

// refused acts on a refusal of the call, in the lane or the sub-lane that the
// refusal concerns.
func (c *call) refused(status int, signal *headers.Signal) {
	c.refusedFor, _ = signal.Wait()
	if c.throttled == 0 {
		c.refusedAt = c.lane.Now()
	}
	part := signal.Scope == headers.ScopeRoute || signal.Scope == headers.ScopeCredential
	if signal.Scope == headers.ScopeRequest || !part && c.alone(c.lane) {
		return
	}
	lanes := c.about
	if lanes == nil {
		lanes = []*lane.Lane{c.concerned(status, signal)}
	}
	c.paused = false
	for _, l := range lanes {
		if part && c.alone(l) {
			continue // others that were served are of the same route or credential
		}
		var a lane.Answer
		c.answer(&a, l, c.own(l, signal.Quotas))
		c.paused = l.Refused(c.ctx, &a, c.refusedFor) || c.paused
	}
}

// alone reports whether the request is refused for its own sake, because the lane serves others.
// Twice may be chance at a limit that is not known yet, so the second time holds the lane, too.
func (c *call) alone(l *lane.Lane) bool { return c.throttled > 1 && l.Alone(c.refusedAt) }

// landed says that the attempt is no longer in flight, and whether the server
// served it.
func (c *call) landed(served bool, quotas []headers.Quota) {
	c.flying = false
	if !served {
		quotas = nil
	}
	var bucket *lane.Lane
	ofAll := quotas
	if c.bucket != "" || c.byRoute { // the bucket's is no quota of the whole lane
		if bucket = c.answeredFor(quotas); bucket != nil || c.bucket != "" {
			ofAll = nil
			for _, q := range quotas {
				if q.Unit != "requests" && c.counts(q.Unit) { // a sub-lane has no limits of tokens
					ofAll = append(ofAll, q)
				}
			}
		}
	}
	for _, l := range c.all() {
		c.land(l, served, c.own(l, ofAll))
	}
	for i := range c.visits {
		v := &c.visits[i]
		var own []headers.Quota
		if v.lane == bucket {
			own = quotas
		}
		if v.passed || len(own) > 0 { // what is reported of a bucket teaches it in any case
			c.land(v.lane, served, own)
			v.passed, v.seen = false, 0
		}
	}
}

// counts reports whether a lane of the call has a limit in the unit.
func (c *call) counts(unit string) bool {
	return slices.ContainsFunc(c.all(), func(l *lane.Lane) bool {
		return slices.ContainsFunc(l.Limits(), func(o throttle.Limit) bool { return o.Unit == unit })
	})
}

// answeredFor returns the sub-lane of the bucket or route whose quotas the answer reports;
// nil if it reports none, or if there are too many.
func (c *call) answeredFor(quotas []headers.Quota) *lane.Lane {
	switch {
	case c.bucket != "":
		return c.openSublane(c.bucketPart(c.bucket), lane.Bucket)
	case len(quotas) > 0:
		return c.openSublane(c.part(headers.ScopeRoute), lane.Bucket)
	}
	return nil
}

// land says it to one of the lanes that the call has passed.
func (c *call) land(l *lane.Lane, served bool, quotas []headers.Quota) {
	a := lane.Answer{Served: served}
	c.answer(&a, l, quotas)
	l.Landed(c.ctx, &a)
}

// answer notes in a what a lane may learn from the attempt. The lane is that of
// the call, a sub-lane that the call has passed, or one that was made for its
// refusal.
func (c *call) answer(a *lane.Answer, l *lane.Lane, quotas []headers.Quota) {
	a.ID, a.Seen, a.Departed = c.turn.ID, c.seenIn(l), c.turn.Departed()
	a.Stood, a.Others = a.Departed.Sub(c.turn.Arrived()), l.Queue.Waiting() > 0
	if len(quotas) > 0 {
		a.Quotas = make([]learn.Quota, len(quotas))
		for i := range quotas {
			noteQuota(&a.Quotas[i], &quotas[i])
		}
	}
}

// seenIn returns the state of a lane when the turn came. One that the call has not passed gets
// that of the widest.
func (c *call) seenIn(l *lane.Lane) lane.Seen {
	for _, v := range c.visits {
		if v.lane == l {
			return v.seen
		}
	}
	if i := slices.Index(c.all(), l); i >= 0 {
		return c.seen[i]
	}
	return c.seen[c.lanes-1]
}

// noteQuota notes a quota in the learner's terms. A bound of calls in flight is no rate, and
// its places come free as calls end, so it has neither a window nor a reset.
func noteQuota(own *learn.Quota, q *headers.Quota) {
	own.Name, own.Unit, own.Limit, own.Remaining = q.Name, q.Unit, q.Limit, q.Remaining
	own.HasLimit, own.HasRemaining, own.Advisory = q.HasLimit, q.HasRemaining, q.Advisory
	if q.Unit != "concurrent-requests" {
		own.Reset, own.HasReset, own.Filled = q.Reset, q.HasReset, q.ResetKind == headers.ResetFull
		own.Window, own.HasWindow = q.Window, q.HasWindow
	}
}

// A server is what HTTP has shown of the server behind a lane. It is kept
// beside the lane for its calls, because the lane itself knows nothing of HTTP.
// The zero value knows nothing yet. It is safe for concurrent use.
type server struct {
	spoken   atomic.Pointer[spoken]
	protocol atomic.Int32 // HTTP major version of its last response; zero: there was none
}

// A spoken is a host with its dialect.
type spoken struct {
	host    string
	plain   bool // the host is its key
	dialect *headers.Dialect
}

// dialect returns the dialect of the request's host. A lane nearly always has
// one host, so the lane looks it up once. Many lanes may have the same host, so
// the last look-up of any lane is tried first.
func (s *server) dialect(req *http.Request, last *atomic.Pointer[spoken]) *headers.Dialect {
	host := req.URL.Host
	if own := s.spoken.Load(); own != nil && own.host == host {
		return own.dialect
	}
	known := last.Load()
	if known == nil || known.host != host {
		known = &spoken{host, plain(host), headers.DialectOf(req)}
		last.Store(known)
	}
	s.spoken.Store(known)
	return known.dialect
}

// answered notes the protocol of a response.
func (s *server) answered(resp *http.Response) {
	if protocol := int32(resp.ProtoMajor); s.protocol.Load() != protocol {
		s.protocol.Store(protocol)
	}
}

// http2 reports whether the server speaks HTTP/2, or may speak it as far as is
// known. A connection can only be found dead after it has answered, so an
// unknown protocol means that no connection was.
func (s *server) http2(secure bool) bool {
	protocol := s.protocol.Load()
	return protocol >= 2 || protocol == 0 && secure
}
