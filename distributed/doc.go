// Package distributed enforces limits through Redis, so that any number of
// processes share one quota of a vendor:
//
//	transport := &weir.Transport{
//		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
//		Store:  distributed.New(rdb, "billing"),
//	}
//
// # How it works
//
// One call of one script reserves permits for callers in line at a replica: a run of
// permits, dated by the clock of Redis. The first caller in line when a permit falls due
// gets it. A replica has one run at a time, for at most half of its line, and no longer
// than a horizon, or than a call takes if that is longer. So replicas take turns, and a busy
// replica uses what quiet ones leave. A permit that is not used within the tolerance after its
// instant is void. A replica that dies loses one run. No replica polls for the permits of a rate: a reply
// says when the next one is due. Near the end of a reported quota, replicas ask again every few milliseconds.
//
// The script reserves no permit that would come after the deadlines of all callers. If the
// next permit of a window is more than a second away, it reserves nothing either: a replica
// with a line asks again each second, because the settlement of an estimate may free permits
// sooner. A caller is rejected for its deadline only on a reply of the last second.
//
// A refusal at one replica pauses all of them: the script moves the state, and a message wakes the
// replicas that hold permits. They believe the message for a second, in which the script confirms
// it. So a publisher on the channel can stop a lane for one second.
//
// Some vendors refuse one route, or one credential, or name the bucket that paid for a response. Then
// the calls of that route, credential or bucket wait in a part of the lane, with a key of its own in
// Redis. Replicas share it like the lane, each from its own first refusal there, or from the first
// response that names the bucket. The refusal of a credential concerns all replicas and credentials
// at once, unless calls of the lane there had another in the last ten minutes, or one of the
// replica's first calls is refused for more than two minutes. With a key for each credential, as of
// [weir.ByHeader], a refusal holds no other.
//
// # What replicas learn
//
// Replicas find together a limit that is not configured, or that is lower than configured:
// see [store.Learner]. Each sends the responses of its vendor with its next call, refusals
// at once, and Redis keeps their order. All replicas apply them in that order. The learned
// rate is one more bucket in the same decision, and one replica at a time probes a vendor
// that refused. If refusals show that the vendor bounds calls in flight, replicas lease slots
// for them, as below. A replica that is cut off keeps its share of what was learned, as of the
// limits. After a flush of Redis the replicas write it again.
//
// A reported rest of a quota is used at once, before anything is learned: each replica sends the
// newest reading, and how many of its calls were answered. The script computes a ceiling up to
// which all calls are granted in any order ([store.Reading]), and grants nothing beyond. There
// calls depart one by one, until it is known how fast the quota rises or when its window ends. The
// answers to a replica that died count as known once nothing has departed for a second.
//
// # The order of callers
//
// Priorities and the weights of tenants order the line of one replica: see docs/order.md.
// Redis does not know them: replicas take turns, by how long their callers have waited.
//
// A limit's reserve for urgent requests ([throttle.Limit].Reserve) is for those of all replicas. A
// replica gets no permit for another request if an urgent one could then not depart at once. A bucket
// beside such limits that has no reserve leaves urgent requests half of its burst, or what it earns in
// 100 ms. It promises permits for so long ahead. A bucket without a burst promises none for later, so
// each replica with other requests in line may call Redis once for each permit. The exception is one
// that earns a permit in less than two calls to Redis: there an urgent request waits for one permit of
// each replica. While Redis does not answer, FailLocal reserves a replica's part for limits of more
// than a minute, and nothing for others: those save no permits then.
//
// # Several lanes on one call
//
// With weir's Transport.Keys a call takes a permit of each lane, and each keeps the bound
// below. A caller that one lane is known to hold waits there, and no permits of the others are
// fetched for it meanwhile. docs/fleet.md has what it costs.
//
// # Calls in flight
//
// If a vendor bounds the calls in flight, weir's Transport.InFlight.Shared bounds them for
// all replicas together: see [Store.Flights]. Without it the number is learned from refusals. A replica leases slots, and uses a slot for
// call after call without a call to Redis. Slots are shared max-min fairly. If there are fewer slots than
// replicas that want one, they get them in turns: for 250 ms from the first call on, and for a minute until
// then. A slot that is idle for 100 ms is returned, at once if other replicas are short.
//
// A lease is renewed after a third of its time ([Store.Lease]). So the slots of a dead
// replica are free at the end of its lease.
//
// # When Redis dies
//
// Calls to Redis have tight deadlines. They are never repeated, because a script whose
// reply was lost may have run. From the first failure on the policy of [Store.OnLoss]
// holds. A breaker stops the calls, and one lane at a time probes Redis, so an
// outage costs the same however many lanes there are. Replicas that are cut off do not
// receive each other's refusals: each continues at its share until it is refused itself. 50 of
// them may each send one call, and those in flight, to a vendor that refuses all.
//
// The vendor may see the following in any window W of a limit of R per second and burst B. N
// is the number of replicas by which each cut-off replica divides. s is [Store.Share]. L is
// what was left at the last reply of a limit of more than a minute, and zero of other limits. X
// is the permit tolerance plus the spread of the way from the last check to the vendor.
//
//	no fault, or replicas killed, stopped, restarted:  R (W+X) + B
//	the state in Redis lost:                           + B, once
//	the clock of Redis moved on:                       + B and the runs in hand, once
//	the clock of Redis moved back:                     nothing more
//	k of N replicas cut off for D:                     + k (s (R D + L) / N + 1)
//	all replicas cut off for D:                        s (R D + L) + N, and the runs in hand, once
//	FailOpen, k replicas cut off for D:                + k (R (D+X) + B)
//	FailClosed:                                        R (W+X) + B, always
//	k replicas miss that a pace of r was revoked:      + k (r Horizon / N + 1), once
//
// N is the largest number of replicas that Redis returned for the lane in the minute before
// its last reply, or [Store.Replicas] if that is larger. Redis counts replicas that used
// the lane within ten seconds. So a fleet that shrank has its share again after 70
// seconds. Only Replicas bounds a fleet whose replicas go one after another: otherwise each
// replica that was counted alone continues at s R. If Redis never replied for a lane and Replicas
// is zero, N is 100 ([DefaultReplicas]). With a share of one half of 600/s, until Redis replies:
//
//	one of 100, by default:       3/s
//	one of 3, by Replicas of 3:   100/s
//
// Set Replicas to the most that you run if they must work without Redis from the first call
// on.
//
// A replica that is cut off spends the run in hand beside its share. Redis counted it, so it is
// within R (W+X) + B. If calls take half a second it lasts as long. It includes prefetched permits.
//
// The last row is about learned paces: a replica that misses the message spends the run in
// hand, and learns of the revocation with its next call.
//
// B is 1 for a leaky bucket, the permits of a sliding log or a sliding window, and twice the
// permits of a fixed window: permits that are used late in one window may be followed by early
// ones of the next. So the vendor may see more than 200 in a second of a log of 200/s, although no
// second was granted more: a permit that counts at one instant may leave X later.
//
// For M calls in flight, each of which ends within the rest of its lease or counts on top:
//
//	no fault, or replicas killed:     M
//	replicas stopped:                 M, and those that the stop caught on the way to the vendor
//	the state in Redis lost, or its
//	clock a minute ahead:             + M, until all have called again: a third of a lease
//	k of N replicas cut off:          + k max(1, s M / N); a replica with a lease keeps it until it ends
//	k cut off under FailOpen:         + k M
//	FailClosed:                       M, always but for the row of lost state
//
// # Versions beside each other
//
// The "1" in the keys is the layout of what is stored. A test freezes the bytes that the scripts write. Versions of
// one layout share one quota, so a rolling deploy sends no more than one version alone. They share what they have
// learned, too: it is stored as JSON, and a version that does not know a field ignores it. If it changes the limits,
// the stricter ones are enforced until no replica has claimed the others for some seconds.
// A limit whose name others lack binds only the replicas that claim it.
//
// Versions of two layouts share nothing. While both run, the vendor may see each limit
// twice, and each process logs that once a minute, with both layouts. Versions before
// 0.1 may change the layout: stop the old one before the new one starts, or halve the limits
// meanwhile. From 0.1 on a version with a new layout also counts in the old keys while they
// are in use, so that a deploy never doubles a load.
//
// # What Redis must grant
//
// All keys are weir:1:{namespace/lane}, and for sliding logs and calls in flight the same
// followed by ":log:<limit>" or ":flights". Every key has a TTL. Only calls in flight,
// configured or learned, need hgetall and hdel. [MinimumACL] is the least that a user of Redis must have. A missing
// grant, or a wrong password, counts as a loss of Redis, and a line of log has the text of its
// error. Without the grant for the channel limits are shared, but a refusal at one replica
// stops the others only at their next call. One line of log says so.
//
// docs/fleet.md has what a lane costs, how far it scales, which servers were tried, and the
// figures of [Store.Prefetch].
//
// # When not to use it
//
// A single process needs no Redis: [throttle.Local] decides in fifty nanoseconds.
package distributed

// MinimumACL is the least that the store's user of Redis must be granted, in the
// words of ACL SETUSER, for namespaces of any name. It needs no key or channel
// of others, and no administrative command. A Cluster needs +cluster|slots
// besides, and a database other than 0 needs +select. Grants of channels came with
// Redis 6.2: for 6.0 leave out resetchannels and &weir:1:*.
const MinimumACL = "resetkeys ~weir:1:* resetchannels &weir:1:* -@all +evalsha +eval +time +hmget +hset +pexpire +del +hgetall +hdel +publish +subscribe +llen +lrange +lset +rpush +ltrim"
