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

// An audience says which requests may be sent again after an outcome.
type audience uint8

const (
	nobody     audience = iota
	idempotent          // requests that may be processed twice
	everybody           // all requests: the server processed nothing
)

// outcome names the outcome of an attempt by what the attempt ended with.
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

// outcomeOfStatus names the outcome of an answer. An unknown 5xx and an invalid status
// above it count as a 500 (RFC 9110 section 15). Among the known ones, 501 and 505 refuse the request as
// it is.
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

// outcomeOfError names the outcome of an error by its type. An error without a type of
// its own is left to go-retryablehttp's policy. A kept connection found dead and an
// HTTP/2 GOAWAY cause such errors.
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

// A retryable is an error that says itself whether another attempt may follow.
// The base may return one.
type retryable interface {
	error
	Retryable() bool
}

// hopeless reports whether the next attempt would end with the same error: the
// certificate is not trusted, the name or the address does not exist.
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

// unsent reports whether the server certainly has processed nothing: there was
// no connection, or HTTP/2 says so (RFC 9113 section 8.7).
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

// A streamError has the fields of net/http's error for an HTTP/2 stream. That
// error's type is not exported, but its method As copies it into any struct with
// the same fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "http2: stream error" }

// refusedStream is REFUSED_STREAM of RFC 9113 section 7.
const refusedStream = 7

// is reports whether err's chain has an error of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// clientError returns err as an http.Client would show it: inside a *url.Error.
// Policies that were made for a client look for that. The URL's user and query
// are left out, because they may be secret.
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
