// Package learn finds a vendor's limit from its answers, and plans how fast a lane may send. It is pure: State.Observe
// applies one answer, and State.Plan returns what to do now. A State has no clock, no lock and no I/O, and is a bounded
// value without pointers. Package sim drives it through the gate that ships, and its TRIED.md lists what was dropped.
//
// # Machines
//
// The least rate and the fewest calls in flight that they allow are in force:
//
//   - [Search] (search.go, measure.go): the rate that refusals bound. It rises until a refusal. The next estimate lies
//     between the rate that was served, which is counted exactly, and the refused one (as lt_bw in Linux' tcp_bbr.c).
//   - Probes (episode.go): after a refusal single calls depart, if the rate is uncertain or a second one is refused.
//   - [Places] (places.go): calls in flight. They grow from one, as in slow start. After a refusal fewer
//     are in flight: if fewer are never refused, the vendor counts calls in flight.
//   - [Before] (before.go): the rate served before refusals lowered it is tried again, as others may have left.
//   - [Ceiling] (ceiling.go): the reported remaining permits of quotas. Departures stay within them, and follow their
//     rise, the rate of a bucket (rise.go), or their windows (window.go). Single calls look for what is unknown
//     (look.go). Readings may count calls in flight instead (flying.go), or not be believed (trust.go).
//
// Their common facts are [Traffic] and [Refusals]. Traffic is the round trip, and the actual pace of departures. Refusals
// is the episode from a refusal to the first served call that departed after it was known, and the counts since the
// previous one. [State] passes them on: observe.go for each answer, episode.go when an episode begins or ends, plan.go for
// the plan. Counts are differences of ordinals, less the refused ones, so the order in which answers land is no matter.
//
// # How it is used
//
// A lane holds one State under one lock. For each answer it makes a Fact. A fleet that has not begun leaves it
// out if [State.Quiet] returns true. After each fact, and before each departure if [Plan.Reported] is set, the
// lane asks for the Plan: Rate is paced, and no call departs before Hold. If Asks is set, the lane waits a second after
// the last departure instead, and until Sure. Most bounds the calls in flight that departed after Since. Configured
// limits stay as they are. A Plan only delays. In a fleet each process observes the same facts in the store's order,
// and ordinals are the store's. [Setting.Without] switches mechanisms off: a test in sim proves that each is needed.
//
// A constant names the row of sim.Table, or the test, that fails if it is halved or doubled. One that names nothing is
// rough. "Random vendors" are drawn by sim.
package learn
