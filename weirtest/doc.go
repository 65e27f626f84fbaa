// Package weirtest tests whether an HTTP client keeps to a vendor's rate limit.
// It runs a vendor with real limits, and fails the test of a client that came too
// early or too often. The client may be any: net/http with a loop around it,
// go-retryablehttp, failsafehttp, an SDK.
//
//	func TestClientWaits(t *testing.T) {
//		vendor := weirtest.New(t, weirtest.TokenBucket(50, time.Second, 10))
//		vendor.Dialect = weirtest.Named("retry-after")
//		callMyAPI(vendor.Client(), vendor.URL)
//		vendor.Check(t)
//	}
//
// # What Check judges
//
//   - early: a request repeated a refused one before the time that the refusal gave.
//   - pause: another request came after a refusal had reached the client, and
//     before the time that the refusal gave.
//   - limit: the limits refused more requests than [Vendor.MaxRefusals].
//
// A repeated request has the method, path and X-Request-Id of the refused one. To distinguish the
// first two rules, give each call a path of its own. The time is in Retry-After or in a reset of
// the refusal: see [Dialects]. If a refusal gives several times, the earliest counts.
//
// # What the client had been given
//
// A refusal counts from the instant at which it was written. A request that comes
// within [Vendor.Delivery] after it may have left before, and is not blamed. Unless
// you set it, that is 100 ms, nothing in a bubble, and nothing for a client that has
// opened only one connection: it sends one call at a time. (Set it for a transport
// with a MaxConnsPerHost of 1, in which calls wait for the connection.)
//
// A request with the X-Request-Id of the refused one certainly left later. So give
// each call such an ID, which its retries repeat, to find even immediate retries.
//
// # Virtual time
//
// In a testing/synctest bubble, [New] serves over in-memory pipes, and a minute
// of pauses takes no time. Reach the vendor by [Vendor.Client] or
// [Vendor.Transport] there. Instants are exact.
//
// # When not to use it
//
// Weirtest does not measure how fast a client is. It does not limit a service: a
// vendor is slow, simple, and keeps a record of every request. For answers that
// are the same in each run, net/http/httptest is enough.
package weirtest
