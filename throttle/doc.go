// Package throttle holds limits and what decides by them: how many permits may
// be spent in how much time.
//
// # Limits
//
// A [Limit] is data: it is compared, printed, parsed ([ParseLimit]) and stands
// in configuration. [TokenBucket], [GCRA] and [LeakyBucket] name a rate;
// [FixedWindow], [SlidingLog] and [SlidingWindow] count in a window.
//
// To stay below a vendor's limit of L in any window W, choose a bucket with
//
//	Permits/Per x W + Burst <= L
//
// for a bucket of rate L/W and burst L lets out almost 2L in a window.
//
// # Limiters
//
// A [Limiter], made by a [Store] such as [Local], enforces limits together, all
// or nothing. It is given the instant and either spends now or names the exact
// instant to ask again. It never sleeps, reads no queue and promises nothing
// ahead; package shaping waits in line for it.
//
// # Exactness
//
// The interval Per/Permits is never rounded, so the long-run rate is exact. A
// permit may be spent late, within the permit tolerance, by who stood in line
// when it fell due, so a late timer does not slow a bucket; later it is void.
// Windows count permits where they are granted, and a caller may wake up late, by
// up to the tolerance: a [SlidingLog] lets out no more than its permits in any span
// shorter than Per by the tolerance, and each late timer costs it its lateness; what
// a [FixedWindow] grants last may leave in the next window.
//
// A limiter's instants come from one clock; one read out of order is refused,
// never granted too much.
//
// # When not to use it
//
// To limit the requests that a server accepts, where a refusal is enough,
// golang.org/x/time/rate is smaller. To wait for permits, use package shaping,
// and for HTTP calls the transport of package weir: both make the limiter.
package throttle
