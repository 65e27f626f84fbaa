// Package peerbench measures Weir beside the libraries that its users would
// otherwise take, on the same work and in the same run. It is a module of its
// own, so that nobody who uses Weir downloads them.
//
// # To run
//
//	go -C internal/peerbench test -run '^$' -bench . -count 5 | tee new.txt
//	go -C internal/peerbench run ./table < new.txt
//	go -C internal/peerbench run ./drain -peers -unknown
//	go -C internal/peerbench run ./vendors
//	go -C internal/peerbench run ./fleet
//
// The output of the first is what benchstat reads; the second prints the
// medians as Markdown. Times drift with the machine: read the ratios of one
// run, not its nanoseconds.
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
//   - vendors: two dozen hidden limits, each learned in real time.
//   - fleet: the same from several processes that share the limit through Redis,
//     and what decisions there cost. It needs redis-server.
package peerbench
