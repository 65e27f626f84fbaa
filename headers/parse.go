package headers

import (
	"net/http"
	"slices"
	"time"
)

// The reasons of a signal.
const (
	reason429       = "status_429"
	reason503       = "status_503"
	reason403       = "status_403"
	reasonStatus    = "status"
	reasonField     = "field"
	reasonBody      = "body"
	reasonZeroQuota = "zero_quota"
	reasonNoRetry   = "no_retry"
)

// generic is the dialect of a vendor that none is known for.
var generic = new(Dialect)

// Parse reads what a response says about quotas, in the dialect of the host that
// its Request was sent to; where there is none, in the generic one. Now is when the
// response was received. Parse never fails: what it cannot trust it leaves out.
//
// Waits lie between zero and 31 days, counts are finite and not below zero.
//
// The response is left as it is, but where its dialect has hints in the body. Parse
// may then wait for the first 64 KiB of that, as long as the request's context lets
// it, and Body has another value, which reads and closes as before.
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
	if resp == nil {
		return Signal{}
	}
	if d == nil {
		d = generic
	}
	telling, aged := scan(resp.Header)
	if !telling && resp.StatusCode < 400 && len(d.Fields)+len(d.Body)+len(d.Refuses) == 0 {
		return Signal{}
	}
	r := reader{clock: clock{now: now, resp: resp, aged: aged}, dialect: d}
	return r.read()
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
	s.Throttled, s.Permanent = s.Reason != "", false
	if s.Throttled {
		status := r.resp.StatusCode
		s.NotProcessed = status == http.StatusTooManyRequests || slices.Contains(r.dialect.NotProcessed, status)
		s.Scope = r.scope
		if s.Scope == ScopeUnknown {
			s.Scope = r.dialect.Scope
		}
	}
	switch {
	case r.forbidden && r.resp.StatusCode >= 400:
		s.Permanent, s.Reason = true, reasonNoRetry
	case s.Throttled && r.zeroQuota():
		s.Permanent, s.Reason = true, reasonZeroQuota
	}
}

// reason returns why the response is a refusal for now, or "".
func (r *reader) reason() string {
	status := r.resp.StatusCode
	switch {
	case status == http.StatusTooManyRequests: // RFC 6585 section 4
		return reason429
	case slices.Contains(r.dialect.Refuses, status):
		return reasonStatus
	case r.refusal != "":
		return r.refusal
	case status == http.StatusServiceUnavailable && r.sig.HasRetryAfter: // RFC 9110 section 15.6.4
		return reason503
	case status == http.StatusForbidden && (r.sig.HasRetryAfter || r.exhausted()):
		return reason403
	}
	return ""
}

// exhausted reports whether a quota has none remaining.
func (r *reader) exhausted() bool {
	return !r.dialect.Advisory && slices.ContainsFunc(r.quotas, func(q Quota) bool {
		return q.HasRemaining && q.Remaining == 0
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
		return q.HasLimit && q.Limit == 0 && (!q.HasRemaining || q.Remaining == 0)
	})
}

// CanRefuse reports whether a response with this status may be a refusal. Where it may
// not, a caller who is not interested in quotas can do without Parse.
func (d *Dialect) CanRefuse(status int) bool {
	if status >= http.StatusBadRequest {
		return true
	}
	return d != nil && (d.BodyOfSuccess || slices.Contains(d.Refuses, status) ||
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
