// Package learn finds a vendor's limit from its answers, and says how fast a lane may go.
// It is pure: Observe makes a new State of a State and one answer, State.Plan says what is
// to be done now. There is no clock, no lock and no I/O in it, and a State is a bounded
// value without pointers. Package sim beside it drives it through the gate that ships, and
// TRIED.md there lists what was dropped.
//
// # Machines
//
// What holds is the least of what these allow:
//
//   - The ceiling ([Ceiling]; ceiling.go, rise.go, spend.go): what answers report to be left.
//     Nothing departs above it, from the first reading on. The rate of a bucket is its slope.
//   - The search (rate.go, measure.go): the rate that 429s bound. It rises from below the
//     estimate to above it, as CUBIC leaves its plateau. A refusal ends the search, and calls
//     served over time since the last one are the next estimate: exact to one call, and too
//     low if a bucket was full in between (lt_bw in Linux' tcp_bbr.c).
//   - The probe (episode.go): after a refusal one call at a time asks, each 1.5 times later,
//     at round instants, because windows end there.
//   - Places ([Places]; flight.go): calls in flight. They grow from one, as in slow start. A
//     refused call is tried again with fewer in flight: if fewer are never refused, places are
//     what the vendor counts.
//   - Elsewhere ([Before]; before.go): others who take all there is for a moment look like a
//     limit that has fallen, so the rate from before is tried again.
//
// Their common facts are the round trip, the pace at which calls really left, and the episode
// from a refusal to the first call served that left after it was known. Counts are differences
// of ordinals, less the refused ones, so the order in which answers land does not matter. A
// time in which nobody called, or nobody waited, shows no rate.
//
// # How it is used
//
// A lane holds one State under one lock. For each answer it makes a Fact; if [State.Quiet] says
// so, the fact is left out. After each fact, and after each departure if [Plan.Told] is set, it
// asks for the Plan: Rate is paced, Most bounds the calls in flight that left after Since, one
// at a time if Probe is set, and nothing leaves before Hold. Configured limits stay as they are.
// A Plan only delays. In a fleet each process observes the same facts in the store's order, and
// ordinals are the store's. [Setting.Without] switches mechanisms off, to measure their worth.
package learn
