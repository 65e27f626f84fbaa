// Package learn finds a vendor's limit from its answers, and says how fast a lane may go.
// It is pure: Observe makes a new State of a State and one answer, State.Plan says what is
// to be done now. There is no clock, no lock and no I/O in it, and a State is a bounded
// value without pointers. Package sim beside it drives it through the gate that ships, and
// TRIED.md there lists what was dropped.
//
// # Machines
//
// Each is a type with its own fields in one file, and what holds is the least of what they
// allow:
//
//   - [Search] (search.go, measure.go): the rate that refusals bound. It rises from below the
//     estimate to above it, as CUBIC leaves its plateau. A refusal ends the search, and the
//     next estimate lies between the rate that was served, which is counted exactly, and the
//     one that was refused (as lt_bw in Linux' tcp_bbr.c).
//   - [Probe] (probe.go): after a refusal one call at a time asks, each 1.5 times later, at
//     round instants, because windows end there.
//   - [Places] (places.go): calls in flight. They grow from one, as in slow start. A refused
//     call is tried again with fewer in flight: if fewer are never refused, places are what
//     the vendor counts.
//   - [Before] (before.go): others who take all there is for a moment look like a limit that
//     has fallen, so the rate from before is tried again.
//   - [Ceiling] (ceiling.go, rise.go, window.go, log.go, spend.go, trust.go): what answers report
//     to be left. Nothing departs above it, from the first reading on. The rate of a bucket is
//     its slope.
//
// Their common facts are [Traffic] (the round trip, and the pace at which calls really left)
// and [Refusals] (the episode from a refusal to the first call served that left after it was
// known, and what was counted since the one before). [State] passes them on: observe.go for
// each answer, episode.go when an episode begins or ends, plan.go for what is to be done.
// Counts are differences of ordinals, less the refused ones, so the order in which answers
// land does not matter. A time in which nobody called shows no rate.
//
// # How it is used
//
// A lane holds one State under one lock. For each answer it makes a Fact; if [State.Quiet] says
// so, the fact is left out. After each fact, and after each departure if [Plan.Reported] is set, it
// asks for the Plan: Rate is paced, Most bounds the calls in flight that left after Since, one
// at a time if Probe is set, and nothing leaves before Hold. Configured limits stay as they are.
// A Plan only delays. In a fleet each process observes the same facts in the store's order, and
// ordinals are the store's. [Setting.Without] switches mechanisms off: a test in sim holds that
// each of them is needed.
package learn
