package backoff

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/hashicorp/go-retryablehttp"
)

// An audience is whose requests may be sent again after an outcome.
type audience uint8

const (
	nobody     audience = iota
	idempotent          // those that may be processed twice
	everybody           // all: nothing was processed
)

// outcome names what came of an attempt.
func outcome(a *Attempt) (Reason, audience) {
	switch {
	case a.Request.Context().Err() != nil:
		return ReasonCanceled, nobody
	case a.Err != nil:
		return outcomeOfError(a.Request, a.Err)
	case a.Signal.Permanent:
		return ReasonFinal, nobody
	case a.Signal.Throttled && a.Signal.NotProcessed:
		return ReasonThrottled, everybody
	case a.Signal.Throttled:
		return ReasonThrottled, idempotent
	}
	return outcomeOfStatus(a.Response.StatusCode)
}

// outcomeOfStatus takes a 5xx that it does not know for a 500 (RFC 9110 section
// 15). Of those it knows, 501 and 505 refuse the request as it is.
func outcomeOfStatus(code int) (Reason, audience) {
	switch {
	case code < http.StatusBadRequest:
		return "", nobody
	case code == http.StatusNotImplemented, code == http.StatusHTTPVersionNotSupported:
		return ReasonFinal, nobody
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout:
		return ReasonFailed, idempotent
	}
	return ReasonFinal, nobody
}

// outcomeOfError goes by types. What has none, such as a kept connection found
// dead or an HTTP/2 GOAWAY, is left to go-retryablehttp's policy.
func outcomeOfError(req *http.Request, err error) (Reason, audience) {
	if e, ok := errors.AsType[retryable](err); ok {
		if e.Retryable() {
			return ReasonFailed, idempotent
		}
		return ReasonFinal, nobody
	}
	switch {
	case errors.Is(err, context.Canceled):
		return ReasonCanceled, nobody
	case hopeless(err):
		return ReasonFinal, nobody
	case unsent(err):
		return ReasonUnsent, everybody
	}
	if again, _ := retryablehttp.DefaultRetryPolicy(context.Background(), nil, clientError(req, err)); again {
		return ReasonFailed, idempotent
	}
	return ReasonFinal, nobody
}

// A retryable is an error that knows itself whether an attempt may follow.
// A base, or what stands before it, may return one.
type retryable interface {
	error
	Retryable() bool
}

// hopeless reports errors that the next attempt would meet again: nobody to
// trust, nobody of that name, no such address.
func hopeless(err error) bool {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e.IsNotFound && !e.IsTemporary
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && (e.Op == "remote error" || e.Op == "local error") {
		return true // a TLS alert
	}
	return errors.Is(err, http.ErrSchemeMismatch) ||
		is[*tls.CertificateVerificationError](err) ||
		is[tls.RecordHeaderError](err) ||
		is[x509.UnknownAuthorityError](err) ||
		is[x509.HostnameError](err) ||
		is[x509.CertificateInvalidError](err) ||
		is[x509.SystemRootsError](err) ||
		is[*net.AddrError](err)
}

// unsent reports errors after which the server certainly has processed nothing:
// no connection came about, or HTTP/2 says so (RFC 9113 section 8.7).
func unsent(err error) bool {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		switch e.Op {
		case "dial", "proxyconnect", "socks connect":
			return true
		}
	}
	if e, ok := errors.AsType[streamError](err); ok {
		return e.Code == refusedStream
	}
	return errors.Is(err, syscall.ECONNREFUSED) || is[*net.DNSError](err)
}

// A streamError has the fields of net/http's error for an HTTP/2 stream, which
// has no exported name but copies itself into any struct that has its fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "http2: stream error" }

// refusedStream is REFUSED_STREAM of RFC 9113 section 7.
const refusedStream = 7

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// clientError returns err as an http.Client would show it, which is what
// policies made for a client look into. It leaves out what of the URL may be
// secret: user and query.
func clientError(req *http.Request, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	e := &url.Error{Op: "Get", Err: err}
	if m := req.Method; m != "" {
		e.Op = m[:1] + strings.ToLower(m[1:])
	}
	if u := req.URL; u != nil {
		e.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return e
}
