// Package learn finds a vendor's limit from its answers, and plans how fast a lane may send. It is pure:
// State.Observe applies one answer, and State.Plan returns what to do now. It has no
// clock, no lock and no I/O, and a State is a bounded value without pointers. Package sim beside it drives it
// through the gate that ships, and TRIED.md there lists what was dropped.
//
// # Machines
//
// Each is a type with its own fields in one file, and the least of what they allow is in force:
//
//   - [Search] (search.go, measure.go): the rate that refusals bound. It rises from below the
//     estimate to above it, as CUBIC leaves its plateau. A refusal ends the search, and the
//     next estimate lies between the rate that was served, which is counted exactly, and the
//     one that was refused (as lt_bw in Linux' tcp_bbr.c).
//   - Probes (episode.go): after a refusal one call at a time departs, each 1.5 times later, unless the
//     estimate is narrow. A probe has passed once it is served, or if its refusal would have come by now.
//   - [Places] (places.go): calls in flight. They grow from one, as in slow start. A refused call is tried
//     again with fewer in flight: if fewer are never refused, the vendor counts calls in flight.
//     The first bound of a fleet is generous.
//   - [Before] (before.go): others that take everything for a moment look like a fallen limit,
//     so the earlier rate is tried again.
//   - [Ceiling] (ceiling.go, rise.go, window.go, log.go, spend.go, trust.go): the reported
//     rest of quotas. From the first reading on, calls depart below it; once it is seen to rise, they
//     depart at its slope, the rate of a bucket.
//
// Their common facts are [Traffic] and [Refusals]. Traffic is the round trip, and the actual pace of
// departures. Refusals is the episode from a refusal to the first served call that departed after it was known,
// and the counts since the previous one. [State] passes them on: observe.go for each answer, episode.go when an
// episode begins or ends, plan.go for the plan. Counts are differences of ordinals, less the refused ones, so
// the order in which answers land does not matter. A time without calls shows no rate.
//
// # How it is used
//
// A lane holds one State under one lock. For each answer it makes a Fact; if [State.Quiet] returns true, the
// fact is left out. After each fact, and after each departure if [Plan.Reported] is set, it asks for the Plan:
// Rate is paced, and no call departs before Hold. Most bounds the calls in flight that departed after Since,
// one at a time if Probe is set. Configured limits stay as they are. A Plan only delays. In a fleet each
// process observes the same facts in the store's order, and ordinals are the store's. [Setting.Without]
// switches mechanisms off: a test in sim proves that each of them is needed. A constant that names no row, test
// or source is rough: half of it, and twice, miss no row of the simulator and fail no test here.
package learn
