// Package throttle holds limits, and limiters that decide by them when permits
// may be spent.
//
// # Limits
//
// A [Limit] is data: it can be compared, printed, parsed ([ParseLimit]) and put
// into configuration. [TokenBucket], [GCRA] and [LeakyBucket] are rates.
// [FixedWindow], [SlidingLog] and [SlidingWindow] count permits in a window.
//
// To stay below a vendor's limit of L calls in any window W, choose a bucket
// with
//
//	Permits/Per x W + Burst <= L
//
// For 100 calls in any minute, TokenBucket(1, time.Second, 40) lets out at most
// 1 x 60 + 40 = 100. TokenBucket(100, time.Minute, 100) lets out almost 200:
// the burst, and what is earned while it is spent.
//
// # Limiters
//
// A [Limiter] enforces limits together, all or nothing. A [Store] makes it;
// [Local] is the store of this process. It is given the present instant. Then
// it either spends the permits, or returns the instant at which to ask again.
// It never sleeps, and promises nothing ahead. Package shaping waits in line
// for it.
//
// # Exactness
//
// The interval Per/Permits is never rounded, so the long-run rate is exact.
//
// A permit falls due at an instant. A caller who stood in line at that instant may
// spend it later, within the permit tolerance. So a late timer does not slow a bucket.
// After the tolerance the permit is void.
//
// Windows count a permit when it is granted, and its caller may wake up later, by up to
// the tolerance. So a [SlidingLog] keeps its permits in any span that is shorter than
// Per by the tolerance. Each late timer delays it as much. The last permits of a
// [FixedWindow] may leave in the next window.
//
// The instants given to a limiter come from one clock. An instant that is read
// out of order only makes the limiter grant less.
//
// # When not to use it
//
// To limit the requests that a server accepts, golang.org/x/time/rate is enough
// and smaller. To wait for permits, use package shaping, and for HTTP calls the
// transport of package weir; both make the limiter.
package throttle
