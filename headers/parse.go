package headers

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// generic is the dialect of a vendor that none is known for.
var generic = new(Dialect)

// Parse reads what a response says about quotas, in the dialect of the host that
// its Request was sent to; if there is none, in the generic one. Now is when the
// response was received. Parse never fails: what it cannot trust it leaves out.
//
// Waits lie between zero and 31 days, counts are finite and not below zero.
//
// The response is left as it is, unless its body may tell more: its dialect has hints
// there, or it is an error in JSON, XML or plain text that may be a refusal (400, 403,
// 503) or a refusal that tells no wait. Parse then waits for the first 64 KiB of it, for five seconds or until the request's
// context ends; what has come by then counts. Body has another value afterwards,
// which reads and closes as before. A body that stood still is read by a goroutine
// until more of it comes, or it is closed.
//
// Parse is safe for concurrent use with different responses.
func Parse(resp *http.Response, now time.Time) Signal {
	if resp == nil {
		return Signal{}
	}
	return DialectOf(resp.Request).Parse(resp, now)
}

// Parse is [Parse] in the dialect d, whatever the host. If d is nil, the generic
// dialect is used.
func (d *Dialect) Parse(resp *http.Response, now time.Time) Signal {
	r, ok := d.reader(resp, now)
	if !ok {
		return Signal{}
	}
	r.header()
	if r.awaitsBody() {
		r.body()
	}
	return r.sig
}

// ParseHeader is [Dialect.Parse] without a wait: it reads the status and the header
// and leaves the body alone. More says that the body may tell more, which Parse
// would wait for.
func (d *Dialect) ParseHeader(resp *http.Response, now time.Time) (signal Signal, more bool) {
	r, ok := d.reader(resp, now)
	if !ok {
		return Signal{}, false
	}
	r.header()
	return r.sig, r.awaitsBody()
}

// reader returns a reader of the response; ok is false if there is nothing to read.
func (d *Dialect) reader(resp *http.Response, now time.Time) (r reader, ok bool) {
	if resp == nil {
		return reader{}, false
	}
	if d == nil {
		d = generic
	}
	telling, aged := scan(resp.Header)
	if !telling && resp.StatusCode < http.StatusBadRequest && len(d.Fields) == 0 && !d.CanRefuse(resp.StatusCode) {
		return reader{}, false
	}
	return reader{clock: clock{now: now, resp: resp, aged: aged}, dialect: d}, true
}

// judge decides what the response means. It may be called again when more is known.
func (r *reader) judge() {
	s := &r.sig
	for i := range r.quotas {
		q := &r.quotas[i]
		q.Advisory = r.dialect.Advisory
		if q.ResetKind == ResetUnknown && q.HasReset {
			q.ResetKind = r.dialect.Reset
		}
	}
	s.Quotas = r.quotas
	s.Reason = r.reason()
	s.Throttled, s.NotProcessed, s.Permanent, s.Scope = s.Reason != "", false, false, ScopeUnknown
	if s.Throttled {
		status := r.resp.StatusCode
		s.NotProcessed = status == http.StatusTooManyRequests || r.notProcessed || slices.Contains(r.dialect.NotProcessed, status)
		s.Scope = cmp.Or(r.scope, r.dialect.Scope)
		r.awaitRate()
	}
	switch {
	case r.forbidden && r.resp.StatusCode >= http.StatusBadRequest:
		s.Permanent, s.Reason = true, ReasonNoRetry
	case s.Throttled && r.zeroQuota():
		s.Permanent, s.Reason = true, ReasonZeroQuota
	}
}

// reason returns why the response is a refusal for now, or "".
func (r *reader) reason() Reason {
	status, d := r.resp.StatusCode, r.dialect
	waits := r.sig.HasRetryAfter
	switch {
	case r.served:
		return ""
	case status == http.StatusTooManyRequests: // RFC 6585 section 4
		return Reason429
	case slices.Contains(d.Refuses, status):
		return ReasonStatus
	case r.refusal != "":
		return r.refusal
	case status == http.StatusServiceUnavailable && waits: // RFC 9110 section 15.6.4
		return Reason503
	case status == http.StatusForbidden && (waits || r.exhausted(r.shortestReset())):
		return Reason403
	case waits && slices.Contains(d.RefusesWithWait, status),
		slices.Contains(d.RefusesByQuota, status) && r.exhausted(0):
		return ReasonStatus
	}
	return ""
}

// shortestReset is the least reset of a used-up quota that makes a refusal of a 403.
func (r *reader) shortestReset() time.Duration {
	if slices.Contains(r.dialect.RefusesByQuota, http.StatusForbidden) {
		return 0
	}
	return 2*time.Second + 1
}

// exhausted reports whether a quota has none remaining, for a time at least.
func (r *reader) exhausted(least time.Duration) bool {
	return !r.dialect.Advisory && slices.ContainsFunc(r.quotas, func(q Quota) bool {
		return q.HasRemaining && q.Remaining == 0 && q.Reset >= least
	})
}

// zeroQuota reports whether a quota grants nothing at all: one of which something
// remains does not mean its limit of zero. Where the response tells
// a time as well, that is a pause: draft-ietf-httpapi-ratelimit-headers pushes
// clients back with a limit of zero until the reset.
func (r *reader) zeroQuota() bool {
	if _, told := r.sig.Wait(); told {
		return false
	}
	return slices.ContainsFunc(r.quotas, func(q Quota) bool {
		return q.HasLimit && q.Limit == 0 && !q.HasReset && (!q.HasRemaining || q.Remaining == 0)
	})
}

// CanRefuse reports whether a response with this status may be a refusal. Where it may
// not, a caller who is not interested in quotas can do without Parse.
func (d *Dialect) CanRefuse(status int) bool {
	if status >= http.StatusBadRequest {
		return true
	}
	return d != nil && (d.BodyOfSuccess || slices.Contains(d.Refuses, status) ||
		slices.Contains(d.RefusesWithWait, status) || slices.Contains(d.RefusesByQuota, status) ||
		slices.ContainsFunc(d.Fields, func(f Field) bool { return f.Tells == FactRefusal }))
}

// DialectOf returns the dialect in which [Parse] reads the response to a request: that
// of its host, nil where none is known.
func DialectOf(req *http.Request) *Dialect {
	if req == nil || req.URL == nil {
		return nil
	}
	return registered.Load().host(req.URL)
}
