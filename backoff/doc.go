// Package backoff decides whether and when an HTTP request is tried again.
//
// # The decision
//
// [Policy.Next] looks at the facts of one [Attempt] and answers with a
// [Decision]. It reads no clock and sleeps nowhere; one Policy serves every
// goroutine, and its zero value works. What it may send again (throttled is 429,
// RFC 6585 section 4, and what else package headers takes for a refusal):
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
// A delay is drawn by full jitter: uniform between zero and the least of Cap
// and Base x 2^(retry-1). It spreads clients that failed together, see
// "Exponential Backoff And Jitter" in the AWS Architecture Blog. What the
// server asks for is a floor, and no attempt is earlier than that, by any
// amount; what is asked beyond the bounds ends the request instead. A throttled
// request whose lane was paused has no delay of its own: it waits in line.
//
// # The bounds
//
// Attempts, throttled answers and total time bound a request; a [Budget]
// bounds the retries of all requests of a lane.
//
// # When not to use it
//
// A program that wants its calls retried sets weir.Transport.Retry. Work that
// must survive a restart, or may be late by more than minutes, belongs in a job
// queue. An operation that is not HTTP is served better by
// github.com/cenkalti/backoff, which takes [Policy.Delays].
package backoff
