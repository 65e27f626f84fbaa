// Package weir makes outbound HTTP calls wait their turn.
//
// A [Transport] goes into an [http.Client] and in front of somebody else's
// API:
//
//	client := &http.Client{Transport: &weir.Transport{
//		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
//	}}
//
// Calls to one host then form a lane: they leave in the order they came, no
// faster than the limits. When the server refuses a call, the whole lane stops
// until the time it was told and goes on spaced, and the call goes again. What
// fails and may be repeated is tried again with capped full jitter. Each wait
// is a span; [Transport.MeterProvider] tells of the lanes in metrics.
//
// # Which limits to set
//
// To stay below a server's limit of L calls in any window W, keep
// Permits/Per x W + Burst <= L, and take off the burst what the permit tolerance
// may add, for a call may leave a moment late: two permits up to 200/s, and one
// for each 100/s above.
//
// # Under a client that tries again
//
// An SDK or a retrying client around a Transport would multiply the attempts of
// both. A Transport recognises the tries of one call: by Idempotency-Key, by
// what the SDKs of OpenAI, Anthropic, AWS and Google Cloud Storage leave in the
// header, by the same request of resty in the same goroutine, and by the same
// request value sent again within its backoff, as stripe-go, go-retryablehttp
// and many loops do. It then counts on, and one call becomes no more requests
// than the greater of the two numbers: a try that was made already gets the last
// answer again, unsent. A loop that makes a new request for each try leaves
// nothing to recognise it by: there let one side alone try again, with Retry set
// to backoff.None or the loop left out.
//
// # When not to use it
//
// A call that must not wait wants [WithMaxWait], not another transport. Work
// that must survive a restart belongs in a job queue. To limit what comes in,
// use a limiter that rejects.
package weir
