// Package learn finds a vendor's limit from its answers, and plans how fast a lane may send. It is pure:
// State.Observe applies one answer, and State.Plan returns what to do now. It has no
// clock, no lock and no I/O, and a State is a bounded value without pointers. Package sim beside it drives it
// through the gate that ships, and TRIED.md there lists what was dropped.
//
// # Machines
//
// Each has its own fields in one file, and the least of what they allow is in force:
//
//   - [Search] (search.go, measure.go): the rate that refusals bound. It rises from below the
//     estimate to above it, as CUBIC leaves its plateau. A refusal ends the search, and the
//     next estimate lies between the rate that was served, which is counted exactly, and the
//     one that was refused (as lt_bw in Linux' tcp_bbr.c).
//   - Probes (episode.go): if the rate is uncertain, or a second refusal follows, one call at a time departs,
//     each 1.5 times later. A probe has passed once it is served, or if its refusal would have come by now.
//   - [Places] (places.go): calls in flight. They grow from one, as in slow start. After a refusal fewer
//     are in flight: if fewer are never refused, the vendor counts calls in flight.
//     The first bound of a fleet is generous.
//   - [Before] (before.go): others that take everything for a moment look like a fallen limit,
//     so the earlier rate is tried again.
//   - [Ceiling] (ceiling.go, rise.go, window.go, spend.go, trust.go, await.go, quota.go): the reported rest of
//     quotas. Calls depart below it, from the first reading on, or from the first refusal if a rate is
//     configured. Once it is seen to rise, they depart at its slope, the rate of a bucket.
//
// Their common facts are [Traffic] and [Refusals]. Traffic is the round trip, and the actual pace of
// departures. Refusals is the episode from a refusal to the first served call that departed after it was known,
// and the counts since the previous one. [State] passes them on: observe.go for each answer, episode.go when an
// episode begins or ends, plan.go for the plan. Counts are differences of ordinals, less the refused ones, so
// the order in which answers land does not matter. A time without calls shows no rate.
//
// # How it is used
//
// A lane holds one State under one lock. For each answer it makes a Fact. A fleet that has not begun leaves it
// out if [State.Quiet] returns true. After each fact, and before each departure if [Plan.Reported] is set, the
// lane asks for the Plan: Rate is paced, and no call departs before Hold. If Asks is set, Hold ends a second after
// the last departure, but not before Sure. Most bounds the calls in flight that departed after Since. Configured
// limits stay as they are. A Plan only delays. In a fleet each process observes the same facts in the store's order,
// and ordinals are the store's. [Setting.Without] switches mechanisms off: a test in sim proves that each is needed.
// A constant that names no row, test or source is rough: half of it, and twice, miss no row and fail no test here.
package learn
