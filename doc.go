// Package weir makes outbound HTTP calls wait their turn.
//
// A [Transport] goes into an [http.Client] and in front of somebody else's API:
//
//	client := &http.Client{Transport: &weir.Transport{
//		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
//	}}
//
// All calls to one host then form a lane. They leave in the order in which they came, no faster
// than the limits allow. When the server refuses a call, the whole lane stops until the time that
// the server asked for. Then it continues at the pace of its configured and learned limits, and the
// refused call is sent again. A call that failed, and may be repeated, is tried again with capped
// full jitter. Each wait is a span, and [Transport.MeterProvider] shows the lanes in metrics.
//
// Two words are distinct: a server refuses a call, and a lane rejects one that cannot depart in
// time.
//
// # Which limits to set
//
// To stay below a server's limit of L calls in any window W, keep
//
//	Permits/Per x (W + D) + Burst <= L
//
// where D is the difference between the longest and the shortest delay on the way to
// the server. Subtract from the burst what the permit tolerance can add, because a call
// may leave a moment late. That is two permits up to 200/s, and one for each 100/s
// above. For 600 a minute, TokenBucket(10, time.Second, 1) lets out 10 x 60 + 1 + 2 = 603,
// which is three too many; TokenBucket(9, time.Second, 48) keeps 9 x 60 + 48 + 2 = 590, or
// 599 if D is a second.
//
// # Under a client that tries again
//
// An SDK or a retrying client around a Transport would multiply the attempts of
// both. A Transport recognises such a client's next try, and sends it once. One
// call then becomes at most ours + theirs - 1 requests. A try is recognised
//
//   - by the number that the SDKs of OpenAI, Anthropic and AWS leave in the header;
//   - otherwise by its method, URL, length, credentials and Idempotency-Key, if
//     such a call failed after several attempts within the client's backoff.
//
// Every try is sent, and gets the server's own answer. A call that only looks
// like such a try loses its retries, and nothing else. If the tries of a client
// differ in URL or credentials, as signed ones may, the retry budget alone bounds
// them. There, let only one side try again: set Retry to backoff.None, or leave
// the loop out.
//
// # When not to use it
//
// A call that must not wait needs [WithMaxWait], not another transport. Work
// that must survive a restart belongs in a job queue. To limit requests that
// come in, use a limiter that rejects them.
package weir
