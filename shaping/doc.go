// Package shaping makes callers wait for permits.
//
// A [Queue] stands in front of one [throttle.Limiter], and is the only code that waits.
// The limiter decides when permits may be spent. The queue holds the callers in line,
// and binds a permit to a caller only when the caller departs. So a cancelled caller
// costs the others nothing. A caller who comes back overtakes those of its tenant who
// came later. A pause or a changed limit re-times all callers in line.
//
//	limiter, err := throttle.Local{}.Limiter("mail", throttle.LeakyBucket(10, time.Second))
//	if err != nil { ... }
//	queue := shaping.NewQueue(limiter)
//	defer queue.Close()
//	if err := queue.Wait(ctx); err != nil { ... }
//
// # Who goes first
//
// The most urgent class goes first ([WithPriority]), except for a share of departures
// that the other classes are guaranteed together. Inside a class the tenants share by
// weight ([WithTenant]). So a flood of calls and retries of one tenant delays another's
// single call by one turn. Each tenant's callers go in the order of their first
// arrival. Callers without a priority or a tenant wait in the order of arrival. A
// caller who asks for less does not overtake one who asks for much.
//
// # Rejection before sleeping
//
// A caller is rejected at once, with the wait in the error, if that wait is certain to end after
// its deadline or after [Queue].MaxWait. A caller in line is rejected as soon as a pause, a slower
// limit or a more urgent caller makes that certain. How long the others in line will take is only a
// guess. It rejects no caller, unless [Queue].MaxForecast is set.
//
// # Several limits for one caller
//
// A [Junction] joins limiters that one caller needs together. A caller departs when all
// allow it, and holds nothing of one while it waits for another. So there is no deadlock.
// Callers that wake each other come to rest without a departure: the type's comment has the proof.
//
// # Without HTTP
//
// Whatever is sent can wait in a queue: an SMTP or SMPP sender calls Wait before each
// message. For gRPC there are interceptors (shaping/grpcshaping). A database/sql pool
// needs none: call Wait before the query, and let SetMaxOpenConns bound the queries
// that run at once.
//
// # When not to use it
//
// To shed load that comes in, use a limiter that rejects; a queue is for load
// that goes out. For HTTP calls use the transport of package weir, which also
// reads what the vendor answers.
package shaping
