// Package shaping makes callers wait for permits.
//
// A [Queue] stands in front of one [throttle.Limiter] and is the only code
// that waits. The limiter decides when permits may be spent; the queue holds
// the callers in line and binds a permit to a caller only at the moment the
// caller departs. So a cancelled caller costs nobody
// anything, one that comes back overtakes those who came after it, and a pause
// or a changed limit re-times everybody in line.
//
//	limiter, err := throttle.Local{}.Limiter("mail", throttle.LeakyBucket(10, time.Second))
//	if err != nil { ... }
//	queue := shaping.NewQueue(limiter)
//	defer queue.Close()
//	if err := queue.Wait(ctx); err != nil { ... }
//
// # Who goes first
//
// The most urgent class goes first ([WithPriority]), but for a share of departures
// that the other classes are guaranteed together. Inside a class the tenants share
// by weight ([WithTenant]), so that a flood of one delays another's single call by
// one turn; and each tenant's callers go in the order of their first arrival. Who
// names neither waits in order of arrival.
//
// # Refusal before sleeping
//
// A caller is refused at once, with the wait in the error, where a lower bound
// of its wait is certain to end after its deadline or after [Queue.MaxWait], and
// one in line as soon as a pause, a slower limit or a more urgent caller makes it so.
// How long the others in line will take is a guess and refuses nobody.
//
// # When not to use it
//
// To shed load that comes in, use a limiter that rejects; a queue is for load
// that goes out. For HTTP calls use the transport of package weir, which also
// reads what the vendor answers.
package shaping
