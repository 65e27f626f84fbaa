// Package peerbench measures Weir beside the libraries that its users would otherwise take, on the
// same work and in the same run. It is a module of its own, so that users of Weir do not download
// them.
//
// # To run
//
//	go -C internal/peerbench test -run '^$' -bench . -count 5 | tee new.txt
//	go -C internal/peerbench run ./table < new.txt
//	go -C internal/peerbench run ./drain -peers -unknown
//	go -C internal/peerbench run ./reporting
//	go -C internal/peerbench run ./vendors
//	go -C internal/peerbench test -run TestWhoWaits -v
//	go -C internal/peerbench run ./fleet
//	go -C internal/peerbench run ./page
//
// The output of the first is what benchstat reads. The second prints the
// medians as Markdown, and the last one a page like docs/measured.md. Times drift
// with the machine: read the ratios of one run, not its nanoseconds.
//
// # What is measured
//
//   - BenchmarkLocal: a decision that need not wait, in this process, beside
//     its floor, one read of the monotonic clock and one compare-and-swap.
//   - BenchmarkRoundTrip: what a round trip costs over a stub.
//   - BenchmarkLanes: the same, with one key and with ten thousand.
//   - BenchmarkWaiters: memory of 100,000 callers in line, and the time to
//     cancel all of them, each in a process of its own.
//   - BenchmarkPacing: the rate that is reached when callers wait for it, and
//     how late departures are.
//   - drain: 2,000 calls through a vendor that answers 429 beyond its limit.
//   - reporting: 10 s worth of calls to each of 36 vendors that report on every
//     answer what is left, in the dialects of real ones.
//   - vendors: two dozen hidden limits, each learned in real time.
//   - TestWhoWaits: calls that came before a time that the vendor gave, or during a
//     pause, by weirtest.
//   - fleet: the same from several processes that share the limit through Redis,
//     and what decisions there cost. It needs redis-server.
//
// # One run of drain
//
// 2,000 calls by 64 workers to a vendor of 200/s with a burst of 20 and 5 ms service, over sockets,
// one run each: the time in ideal times of 9.9 s / 429s / failed calls. The two cores were shared
// with other work, at a load of 10 to 17, so that Weir with the configured limit took 1.01 to 1.08:
// compare columns.
//
//	the vendor says      Weir, told   Weir, told   retryablehttp   AWS adaptive   failsafehttp
//	                     the limit    nothing                      mode
//	429 alone            1.08/0/0     1.13/17/0    1.73/365/11     1.65/40/0      0.16/5301/1657
//	Retry-After, s       1.02/0/0     1.48/3/0     1.24/721/52     2.42/58/0      1.44/854/147
//	Retry-After-Ms       1.05/0/0     1.06/30/0    1.53/365/10     1.64/41/0      0.47/4106/1121
//	X-RateLimit          1.02/0/0     1.03/0/0     1.23/758/54     1.64/44/0      1.14/783/144
//	the IETF's RateLimit 1.01/0/0     1.02/0/0     1.13/699/39     1.63/3/0       1.15/813/164
//	"0 left, 1 s" always 1.07/0/0     1.27/15/0    1.36/811/58     2.41/63/0      1.08/747/117
//
// Weir configured with 250/s, a quarter too much: 1.12/18/0 with 429 alone, 1.30/3/0 with
// Retry-After in seconds, 1.11/1/0 with X-RateLimit. x/time/rate below retryablehttp, configured
// with as much: 1.73/473/0 with 429 alone.
//
// # One run of fleet -decision
//
// A decision of a limit that is never reached, shared through Redis, medians of five. The
// two cores were shared with other work, at a load of 3 to 4: compare rows.
//
//	goroutines             1                    16                    256
//	PING                   20.5 µs, 48,800/s    260 µs,  61,600/s     4,432 µs,  57,800/s
//	redis_rate             32.6 µs, 30,700/s    420 µs,  38,100/s     7,279 µs,  35,200/s
//	Weir                   35.6 µs, 28,100/s     86 µs, 186,500/s       298 µs, 857,900/s
//	its scripts a decision 1                    0.073                 0.0068
//
// Of one goroutine's time the same EVALSHA through go-redis alone takes all but 3 µs, and
// 1.5 µs more than redis_rate's in Redis.
//
// # One run of fleet beside token-throttle
//
// 2,000 calls of eight processes that share 200/s, one run over Redis 7.0.15, with
// token-throttle 10.0.0 and redis-py 6.4.0 in Python 3.14. The two cores were shared with
// other work, at a load of 19: compare rows. The time is in ideal times of 9.9 s.
//
//	                 time    429s    p50, p99           scripts, commands a success
//	redis_rate       1.005   1       396 ms, 2,725 ms   101, 305
//	token-throttle   1.301   221     264 ms, 5,105 ms   3.6, 41
//	Weir             1.046   0       640 ms,   853 ms   0.65, 2.7
//
// The burst of token-throttle is the rate of a second, so the vendor refuses a part of it.
// It decides under a lock in Redis for which callers poll, by default every 50 ms.
package peerbench
