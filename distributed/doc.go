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
// Nobody polls. One call of one script reserves permits for the whole line at a
// replica: a run of permits, dated by the clock of Redis. The first in line when a
// permit falls due has it. A replica has one run at a time, for at most half of its
// line and no longer than a horizon, or than a call takes if that is longer. So
// replicas take turns, and a busy one takes what the quiet ones leave. A permit that
// is not used within the tolerance after its instant is void. A replica that dies takes
// one run with it.
//
// No permit is reserved that would come after the deadlines of all who wait. If the
// next permit of a window is more than a second away, nothing is reserved either: a
// replica with a line asks again each second, because an estimate may be settled
// before. A caller is refused for its deadline only on what Redis told in the last
// second.
//
// A refusal at one replica pauses all of them: the script moves the state, and a
// message wakes the replicas that hold permits. They believe the message for a second,
// in which the script confirms it: whoever can publish on the channel can stop a lane
// for that long, no longer.
//
// # What replicas learn
//
// The limit that a vendor did not tell, or that is lower than configured, is found by
// all replicas together: see [throttle.Learner]. What one of them was answered travels
// with its next call, at once if it was refused, and Redis keeps the order. All of
// them hear it in that order and so know the same. The pace that they learned is a
// bucket more in the same decision, and one replica at a time asks whether a vendor
// that refused serves again. A replica that is cut off keeps its share of what was
// learned as it does of the limits. After a flush of Redis the replicas write it again.
//
// What a vendor reports to be left holds at once, before anything is learned: each replica
// sends the newest reading, and how many of its calls were answered. The script lets nothing
// depart beyond the number up to which all calls are granted, in whatever order they arrive
// ([throttle.Reading]). There they go one by one, until it is known how fast the quota rises
// or when its window ends. The answers to a replica that died count as known after two seconds.
//
// # The order of callers
//
// Priorities, their guaranteed shares and the weights of tenants order the line of one
// replica. Redis does not know of them: replicas take turns, by how long their callers
// have waited. If one replica has only urgent callers and another only low ones, each
// gets half of the rate. To keep a campaign behind other calls, let both stand in the lines
// of the same replicas, or give the campaign a namespace and limits of its own.
//
// # Permits ahead of callers
//
// A lone caller waits for a call to Redis. With [Store.Prefetch] a replica whose callers come
// steadily, 16 in a row with no gap of eight usual ones, asks for permits before they
// come, each dated for the instant at which one is expected. They are granted only while
// half of each burst is at hand, so that those of other replicas find theirs. It is off
// unless set, because it takes of the burst for a moment, and permits that nobody came
// for are void: of callers at random 5 to 20 %, of even ones none. It is for one or two
// buckets, of which none is learned, and for callers who all ask for the same.
//
// Nothing more departs for it. A permit that was asked for ahead is charged at its
// instant, and void after the tolerance, at a pause or a change of limits, as any other:
// the table below holds to the permit. If nobody has come for eight gaps, 10 ms at least,
// all goes back at once, and a quiet replica holds nothing. One that crashes takes with
// it, besides its run, no more permits than
//
//	λ (2P + t) + 2, where P is at most Prefetch, Horizon and (B-1) / 4R
//
// with λ callers per second by the last 16, and a round trip of t. With P of 50 ms and 700
// callers per second that is 72. Nobody departs too much for that; they are lost.
//
// Measured over a Redis on two cores that others used too, at 70 % of the rate, callers
// evenly: of 5,000/s half waited 0.7 µs and nine of ten 6 µs, where it had been 67 and 183,
// with 0.08 scripts a call or fewer where it was one. Of 1,000/s half waited 0.2 to 2 µs instead of 170, with
// 0.03 to 0.4 scripts: a process that stands still for longer than the tolerance loses what
// it had. In virtual time, where none does, with a trip of 0.3 ms and P of 25 ms, even callers of 700/s
// did not wait, with 0.06 scripts a call. Of callers at random, 3,500/s of 5,000/s and P of
// 50 ms, 93 in 100 did not wait, with 0.05; of 950/s of 1,000/s and P of 25 ms 83, with 0.20.
//
// # Calls in flight
//
// Where a vendor bounds the calls in flight, weir's Transport.SharedMaxInFlight bounds
// them for all replicas together: see [Store.Flights]. A replica leases slots, each of
// which is the right to have one call in flight, and uses a slot for call after call
// without a word to Redis. It has as many slots as it wants, or as any other has. If
// there are fewer slots than replicas that want one, they have them in turns of 250 ms.
// What a replica does not use for 100 ms goes back, at once if others are short.
//
// A lease is renewed at a third of its time ([Store.Lease]), so the slots of a replica
// that died come back with the end of its lease. Of M calls in flight, a service time of
// 50 ms and lines everywhere, 0.97 to 1.00 of the slots were in use, and a call in
// flight took 0.03 to 0.4 calls to Redis: the more, the more replicas there are for a
// slot. The script takes 22 µs for two replicas, and 5 µs for each further one. 300 replicas
// that were short of slots kept Redis busy for 0.7 of a core, and used 0.71 of the slots. With no
// grant for the channel slots are handed on at the next renewal.
//
// # When Redis dies
//
// Calls have tight deadlines. They are never repeated, because a script whose reply
// was lost may have run. From the first failure on the policy of [Store.OnLoss]
// holds; a breaker stops the calls, and one lane at a time asks whether Redis is back,
// so that an outage costs the same however many lanes there are.
// Replicas that are cut off do not hear of each other's refusals: each goes on at its
// share until it is refused itself. 50 of them may send a vendor that refuses all one
// call each, and those in flight, before they are still.
//
// Three fleets lived through half an hour of such faults, two or three at a time, 1,815
// times: ways that were cut, slow or silent, kills and stops of Redis and of replicas,
// lost state, and clocks that were stepped by up to an hour. They were back at half their
// rate after 5 ms in half of all cases, in 99 of 100 within 1.3 s, and always within 5 s,
// on two processors that had ten times as much to do. None was over the bound, and
// neither memory nor descriptors grew.
//
// What the vendor may see in any window W of a limit of R per second and burst
// B, where N is the number of replicas that each cut-off one divides by, s is
// [Store.Share], L is what Redis told last that was left of a limit of more than a
// minute, zero of others, and X is the permit tolerance and the spread of the way
// from the last check to the vendor:
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
// N is the largest count of replicas that Redis returned for the lane in the last minute before
// its last answer, or [Store.Replicas] if that is larger. Redis counts replicas that used the lane
// within ten seconds. So a fleet that shrank has its share again 70 seconds later, and only
// Replicas bounds a fleet whose replicas go one after another: without it each replica that
// was counted alone goes at s R. If Redis never
// answered for a lane, and Replicas is zero, N is 100 ([DefaultReplicas]). With a share of a half, of 600/s
//
//	one of 100, as long as nothing else is said:   3/s
//	one of 3, by Replicas of 3:                    100/s
//
// departs there until Redis answers. Set Replicas to the most that you run if they must
// work without Redis from the first call on.
//
// A replica that is cut off spends the run in hand beside its share. Redis counted it, so
// that it is within R (W+X) + B. If calls take half a second it lasts as long, and permits
// that were asked for ahead of callers are of it.
//
// The last row is of paces that were learned together: who misses the news spends the run
// in hand, and hears of it with its next call.
//
// B is 1 of a leaky bucket, the permits of a sliding log or a sliding window, and
// twice the permits of a fixed window: what is late in one may stand beside what is
// early in the next. So a log of 200/s may show more than 200 in a second, though no
// second was granted more: a permit that counts at one instant may leave X later.
//
// And of M calls in flight, each of which ends within the time that is left of a lease
// or counts on top of these:
//
//	no fault, or replicas killed:     M
//	replicas stopped:                 M, and those that the stop caught on the way to the vendor
//	the state in Redis lost, or its
//	clock a minute ahead:             + M, until all have called again: a third of a lease
//	k of N replicas cut off:          + k max(1, s M / N); one that has a lease goes on with that until it ends
//	k cut off under FailOpen:         + k M
//	FailClosed:                       M, always but for the row of lost state
//
// # Versions beside each other
//
// The "1" in the keys is the layout: it names what stands there. A test freezes the
// bytes that the scripts write. Versions of one layout share one quota, so a rolling deploy sends no more than
// one version alone. If it changes the limits, the stricter ones hold until the
// replicas that claim the others have been gone for some seconds.
//
// Versions of two layouts share nothing. While both run, the vendor may see each limit
// twice, and so each process logs that once a minute, with both layouts. Versions before 0.1
// may change the layout: stop the old one before the new one starts, or halve the limits
// meanwhile. From 0.1 on a version with a new layout also counts in the old keys while they
// are in use, so that a deploy never doubles a load.
//
// # What Redis must grant
//
// All keys are weir:1:{namespace/lane} and, for sliding logs and calls in flight, that
// with ":log:<limit>" or ":flights" after it; every key has a TTL. Only calls in flight
// need hgetall and hdel. The least that a user of Redis
// must have is documented at [MinimumACL]. A missing grant, or a wrong password, is a loss of Redis,
// and a line of log has the text of its error. Without the grant for the channel limits are
// shared, but a refusal at one replica does not stop the others: each learns of it with
// its next call. One line of log says so.
//
// # What a lane costs
//
// A store has one goroutine, which hears the news (one for each shard of a Ring), and a
// connection for it, and as many connections for calls as go-redis' PoolSize at most (20
// on two cores): with one lane or with 100,000. A lane that was used once and is idle has
// neither goroutine nor timer. Of 100,000 lanes of a weir.Transport each took, in bytes:
//
//	                                    this process    Redis, by MEMORY USAGE
//	a token bucket                             8,398    656, one key
//	the same, with learning                    8,397    656, until something is learned
//	a bucket, a window and a sliding log       9,349    1,130, two keys
//	a bucket and calls in flight (of 20,000)   9,276    656, and 330 while slots are leased
//
// A sliding log takes some 20 bytes more with each instant. In a log of more than 4,096
// permits these are the ends of 4,096 parts of its span, so that it takes 100 KB at most. A
// lane's keys die by themselves once it is as good as new.
//
// # Scale
//
// In virtual time, over a script engine in the process (see redispipe), 1,000 replicas
// shared 300/s, burst 30, with a round trip of 2 ms: 1,008,530 calls in an hour. None was
// over the bound.
//
//	callers at random, 0.9 of the rate    line p50 0, p99 3; wait p99 2 ms; 1.00 scripts a call
//	a pause of 60 s, told by one replica  nobody departed after its word; full rate 4 ms after its end
//	1 or 4 callers in a loop at each      300.0/s; Jain's index 1.0000: each replica has the same
//	half of the replicas killed           500 permits lost, one of each; full rate within 4 s
//
// A replica in line asks once a second whether there is something nearer. While all of
// them were in line that came to 2.6 scripts a call, and 1.60 over the hour.
//
// One lane is decided by one shard of Redis, which has time for about 70,000 scripts a
// second. STRIPES.md tells how a quota is cut if that is not enough.
//
// # Servers
//
// The conformance of the script, the table of faults, Cluster, Sentinel, Ring, TLS, RESP2
// and RESP3, and users of few grants (.ci/servers: 313 tests) were run against:
//
//	Redis 7.0.15 (Debian's, in CI)    all
//	Redis 6.2.16                      all but loading, whose test needs an option of Redis 7
//	Redis 7.2.6, 7.4.1                all
//	Redis 8.0, its branch of 10/2024  all
//	Valkey 8.0.1                      all
//	KeyDB, its branch of 4/2024       all but too few replicas: it runs scripts also then
//	Dragonfly, Redis 6.0              not tried
//
// # When not to use it
//
// A single process needs no Redis: [throttle.Local] decides in fifty
// nanoseconds.
package distributed

// MinimumACL is the least that the store's user of Redis must be granted, in the
// words of ACL SETUSER, for namespaces of any name. It needs no key or channel
// of others, and no administrative command. A Cluster needs +cluster|slots
// besides, and a database other than 0 needs +select. Grants of channels came with
// Redis 6.2: for 6.0 leave out resetchannels and &weir:1:*.
const MinimumACL = "resetkeys ~weir:1:* resetchannels &weir:1:* -@all +evalsha +eval +time +hmget +hset +pexpire +del +hgetall +hdel +publish +subscribe +llen +lrange +lset +rpush +ltrim"
