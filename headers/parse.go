package headers

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// generic is the dialect of a vendor whose own dialect is not known.
var generic = new(Dialect)

// Parse reads what a response says about quotas, in the dialect of the host
// that its Request was sent to. If the host has none, the generic dialect is
// used. Now is the time at which the response was received. Parse never fails:
// it leaves out what it cannot trust. If resp is nil, the signal is the zero
// one.
//
// Waits lie between zero and 31 days. Counts are finite and not below zero.
//
// Parse reads the body only if it may say more than the header. That is so if the dialect has hints there. It is also so for errors in JSON, XML or plain text that may
// be refusals (400, 403, 503), or that refuse without a wait. It is so for a refusal's problem document (RFC 9457), which may name the quotas. Parse then waits for the
// first 64 KiB of the body, for five seconds or until the request's context ends. The part received by then counts. Afterwards resp.Body has another value, which reads
// and closes as before. If the body had stalled, a goroutine reads it until more of it comes or until it is closed.
//
// Parse is safe for concurrent use with different responses.
func Parse(resp *http.Response, now time.Time) Signal {
	if resp == nil {
		return Signal{}
	}
	return DialectOf(resp.Request).Parse(resp, now)
}

// Parse is [Parse] in the dialect d, whatever the host. If d is nil, the
// generic dialect is used.
func (d *Dialect) Parse(resp *http.Response, now time.Time) Signal {
	var r reader
	if r.header(d, resp, now) && r.awaitsBody() {
		r.body()
	}
	return r.sig
}

// ParseHeader is [Dialect.Parse] without a wait: it reads the status and the
// header, and leaves the body alone. If more is true, the body may say more,
// and Parse would wait for it. If now is zero, it is the present, which is read
// only if the response states an instant.
func (d *Dialect) ParseHeader(resp *http.Response, now time.Time) (signal Signal, more bool) {
	var r reader
	more = r.header(d, resp, now) && r.awaitsBody()
	return r.sig, more
}

// judge decides what the response means. It is called again after the body was read.
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
	s.Throttled, s.NotProcessed, s.Permanent, s.Scope, s.Violated = s.Reason != "", false, false, ScopeUnknown, nil
	if s.Throttled {
		s.Violated = r.violated
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

// reason returns why the response refuses for now, or "" if it does not.
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
	case status == http.StatusForbidden && (r.sig.RetryAfter > 0 || r.exhausted(r.shortestReset())): // some report a wait of zero with every answer
		return Reason403
	case waits && slices.Contains(d.RefusesWithWait, status),
		slices.Contains(d.RefusesByQuota, status) && r.exhausted(0):
		return ReasonStatus
	}
	return ""
}

// shortestReset returns how far away the reset of a used-up quota must be for a
// 403 to be a refusal.
func (r *reader) shortestReset() time.Duration {
	if slices.Contains(r.dialect.RefusesByQuota, http.StatusForbidden) {
		return 0
	}
	return 2*time.Second + 1
}

// exhausted reports whether a quota has none remaining, with a reset no earlier
// than least.
func (r *reader) exhausted(least time.Duration) bool {
	return !r.dialect.Advisory && slices.ContainsFunc(r.quotas, func(q Quota) bool {
		return q.HasRemaining && q.Remaining == 0 && q.Reset >= least
	})
}

// zeroQuota reports whether a quota grants nothing at all. A quota of which
// something remains does not mean its limit of zero. Nor does a response that
// states a time: with a limit of zero and a reset,
// draft-ietf-httpapi-ratelimit-headers pushes clients back until the reset.
func (r *reader) zeroQuota() bool {
	if _, ok := r.sig.Wait(); ok {
		return false
	}
	return slices.ContainsFunc(r.quotas, func(q Quota) bool {
		return q.HasLimit && q.Limit == 0 && !q.HasReset && (!q.HasRemaining || q.Remaining == 0)
	})
}

// CanRefuse reports whether a response with this status may be a refusal. If it
// cannot be one, a caller who is not interested in quotas need not call Parse.
// A nil Dialect is the generic one.
func (d *Dialect) CanRefuse(status int) bool {
	return status >= http.StatusBadRequest || d != nil && d.refuses(status)
}

// refuses reports whether the dialect has a refusal under a status that is no error.
func (d *Dialect) refuses(status int) bool {
	return d.BodyOfSuccess || slices.Contains(d.Refuses, status) ||
		slices.Contains(d.RefusesWithWait, status) || slices.Contains(d.RefusesByQuota, status) ||
		slices.ContainsFunc(d.Fields, func(f Field) bool { return f.Fact == FactRefusal })
}

// DialectOf returns the dialect in which [Parse] reads the response to a
// request: that of the request's host, or nil if none is known.
func DialectOf(req *http.Request) *Dialect {
	if req == nil || req.URL == nil {
		return nil
	}
	return known().host(req.URL)
}
