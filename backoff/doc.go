// Package backoff decides whether and when an HTTP request is tried again.
//
// # The decision
//
// [Policy.Next] takes the facts of one [Attempt] and returns a [Decision]. It
// reads no clock and never sleeps. One Policy serves every goroutine, and its
// zero value works. The table says whose requests are sent again after which
// outcome. An outcome is throttled if it is a 429 (RFC 6585 section 4) or
// another answer that package headers takes for a refusal. A status above 599
// counts as a 500 (RFC 9110 section 15).
//
//	outcome                                GET, HEAD, OPTIONS, TRACE,     POST, PATCH,
//	                                       PUT, DELETE, Idempotency-Key   others
//	throttled, and nothing was processed   yes                            yes
//	throttled otherwise                    yes                            no
//	never sent: refused, no host for now   yes                            yes
//	408, 5xx but 501 and 505, reset,       yes                            no
//	timeout of the attempt
//	everything else                        no                             no
//
// # The delay
//
// By default a delay is drawn by [FullJitter]: uniformly between zero and a
// bound that doubles from retry to retry. Jitter spreads clients that failed
// together. If the server asks for a time, no attempt is earlier than that, by
// any amount. If it asks for more time than the bounds allow, the request ends
// instead. A throttled request whose lane was paused has no delay of its own: it
// waits in line.
//
// # The bounds
//
// Attempts, throttled answers and total time bound one request. A [Budget]
// bounds the retries of all requests of a lane together.
//
// # When not to use it
//
// A program that wants its calls retried sets weir.Transport.Retry. Work that
// must survive a restart, or may be late by more than minutes, belongs in a job
// queue. An operation that is not HTTP is served better by
// github.com/cenkalti/backoff, which takes [Policy.BackOff].
package backoff
