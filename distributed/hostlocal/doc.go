// Package hostlocal enforces limits through files, so that the processes of one user on one
// host share a vendor's quota without a server: command lines, cron jobs, CI jobs, agents.
//
//	transport := &weir.Transport{
//		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
//		Store:  new(hostlocal.Store),
//	}
//
// # How it works
//
// Each lane has a file. A decision locks the file, reads the state of the limits, decides by
// the arithmetic of [throttle.Local], and writes the state. Each write goes to the other of
// two places, with a number and a checksum. So a process that is killed at any instant
// leaves the last state whole, and the kernel releases its lock. No permits are held ahead: a
// killed process loses only the permits of its calls. Nothing is synced to the disk: a
// loss of power may lose what was written last, or all of the state.
//
// Processes do not notify each other. A process whose callers wait looks at the file every 50 ms.
// Pauses, returned permits, changed and learned limits reach the others by then, and each decision
// at once. Callers of different processes depart in no order, and no process holds a place in line.
//
// If processes enforce different limits, all of them are in force until no process has used a lane
// with them for ten seconds.
//
// # What the vendor may see
//
// In any window W, for a rate of R, a burst of B and X as in package distributed:
//
//	no fault, or processes killed, stopped:   R (W+X) + B
//	files removed, damaged, power lost:       + B, once; files removed: + R times a second, too
//	the wall clock moved on:                  + B, once
//	the wall clock moved back:                nothing more
//	the file cannot be used:                  nothing more: callers are refused
//
// If the file of a lane cannot be used for a second, callers are refused with
// [ErrUnavailable]: the disk is full, permissions have changed, or a process was stopped
// while it had the lock, which takes some microseconds of each decision.
//
// # The files
//
// The directory is weir in [os.UserCacheDir], unless [Store.Dir] names another. It must belong to
// this user, and files have mode 0600. A symbolic link in the place of a file is refused. The name
// of a file is a hash of the namespace and the key. It holds limits, counts, instants and what was
// learned: no keys, no credentials, nothing of requests. Files that were not used for 100 days are
// removed. A version with another layout uses other files and shares nothing.
//
// # When not to use it
//
// Locks of network file systems are slow or missing: use a local disk, and package distributed
// for several hosts. Users do not share limits. The store does not bound calls in flight
// of all processes (weir's Transport.InFlight.Shared). A lane keeps a file open. A sliding log
// may have 4,096 permits at most, and a lane two such logs. Each process whose callers wait asks
// for each permit: on two cores, 20 processes that share 200 permits a second use one core, and
// 100 use both and reach half of that rate.
package hostlocal
