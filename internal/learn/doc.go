// Package learn finds a vendor's limit from the vendor's answers, and says how
// fast a lane may go. It is pure: Observe makes a new State of a State and one
// answer, State.Plan says what is to be done now. There is no clock, no lock and
// no I/O in it, and a State is a bounded value without pointers that marshals to
// JSON. Package sim beside it is the table that it is measured by.
//
// # What a vendor may count
//
// A lane begins in Start: calls in flight are bounded and the bound grows as
// calls are served, as TCP's window does in slow start. The first refusal leads
// to Trial, unless a time was told with it: what was refused is tried again with
// fewer calls in flight. If fewer are never refused, calls in flight are what
// counts (Flight); otherwise calls in time are (Rate). Windows, logs, blocks and
// several limits at once are all Rate: an even pace holds each of them.
//
// # Rate
//
// W is the estimate, U its width as a share of it, R the rate in force. A search
// begins at W(1-U) and passes W after [State.search] calls that somebody waited
// for; R rises with 2^X, as CUBIC leaves its plateau, and from X = 2 on faster,
// since then the limit rose. A refusal ends the search. The episode that follows
// ends with the first call that is served and left after the refusal was heard;
// what left before is old news. From the end of one episode to the end of the
// next, n calls were served in t seconds:
//
//   - n/t is no more than the rate, because a bucket that was full in between
//     lost permits, and exact to 1/n if it was not (SIGCOMM'16, "An
//     Internet-Wide Analysis of Traffic Policing"; lt_bw in Linux' tcp_bbr.c);
//   - so is (n-b)/d for the last n calls before the refusal and the d seconds
//     they took, b the burst; the best of eight marks on the ramp is taken;
//   - the rate in force when the refused call left is no less than it. That is
//     not the rate when its refusal is heard: with answers 100 ms late the
//     difference kept lanes at 8 % refused for good.
//
// W is the geometric mean of the two bounds and U half their distance. Counts are
// differences of ordinals, less what was refused, so the order in which answers
// land does not matter.
//
// The constants: U is at least 0.015, because a search takes 2.35/U calls and one
// refusal in 150 calls is what the slowest vendors are to see; at most 0.5.
// A search takes at least 0.045 s/U, 0.4 round trips/U, a third less than U
// periods/U of windows, and as long as a silence cost: losing the share U of n
// calls costs what one silence does when n = W silence/U. Silences that nobody
// told count for no more than 0.8 s, unless they are blocks of about equal length, and a
// search takes 20 s, three periods or ten blocks at most for a silence's sake: one second in
// twenty is what a bucket with Retry-After in whole seconds may lose by it. A wide
// estimate searches four times faster, because it is there to be narrowed; if it
// stays wide three times running it is taken slower each time, since a ramp that is
// shorter than a window shows nothing of the window.
// The rate rises by 22 % in a round trip at most, so that what is in flight when
// a limit is met is a fifth of the limit; so the rate at which a refused call left
// was no more than that below the rate when its refusal is heard. An estimate
// falls to a quarter at most in one episode: a block, or a window that others or
// the one before used up, shows a count that says nothing of the rate. If the rate
// had risen far above the estimate (X above 3), what was served in the whole search
// is no upper bound either, since the lane asked for less.
//
// Of windows, which are known by what they serve at once, the last period before a
// refusal tells most: the rate that was in force a period ago was served for a whole
// one, and what left in the period and the told silence after it fills windows to the
// square of how far the rate was too high. A sliding counter tells a silence that is
// longer than what was overspent; then that count is below the rate that was served,
// and bounds nothing from above. While the estimate of told windows is wide, the rate
// rises by about a fifth in a period (20 U periods/U, 12 s/U at most): a rate that
// doubles within a period leaves the estimate as wide as it was. If half of a told
// silence may be its rounding, a refusal soon after a measurement lowers the
// estimate by a tenth, since a count over that silence says half of the rate.
//
// If a call in ten, or more, leaves without anybody waiting, counts and paces show the
// demand and not the limit. Then a measurement keeps the lower bound that was known,
// the rate is not raised, and nobody is refused for the sake of a rate that nobody
// asks for. A lane that was asked for a third of 50/s sank to an estimate of 8/s
// before this. A worker alone leaves so, too, if it is slow by itself: the rate is raised
// all the same if calls leave at nearly the rate in force.
//
// Nobody may call for a while, in the midst of an episode too, and the clock of a store
// may be set forward. Such a time is no silence of the vendor's: if it is longer than
// a second and ten intervals of the rate, counts and paces begin anew after it, and an
// episode that ends with more than a minute of it only widens the estimate. The first estimate is an eighth
// at least of the rate that was refused, if its silence is short: lanes that called
// little before sank to a call in a quarter of an hour.
//
// Probes go one at a time, 1.5 times further apart each, at round instants of
// the wall clock and since the window began, for windows end there, and at the
// end of a cycle that two silences agreed on. If refusals block the lane, for as
// long as two silences in a row were, the second probe waits for 0.95 of that block,
// so that the silence shrinks until a probe is refused. A longer silence is an outage,
// until another is as long. Silences count as equal within 0.3 of their length, because
// probes that are 1.5 times further apart each tell no more. A count of fewer than
// 0.5/U calls
// says less than is known and only widens U.
//
// # Others who come and go
//
// Others who take all there is for a moment look like a limit that has fallen: the next
// estimate is what they left, and a search that is as long as their silence was finds
// the rest in a quarter of a minute. So what was served in the second or two before is
// kept ([Before]), and if the estimate fell below 0.85 of it, the rate is raised to it
// again a second after the last refusal, and if that is refused, 4 and 16 seconds after.
// What is served there for a second is the estimate again. If no limit was known before,
// it is a wide one. Windows that are spent, and silences of more than 2.5 s, are not
// taken for others: sliding counters punish each attempt.
//
// # Told times
//
// A told end of seconds says that nothing would have been served until then, less
// the second by which it may be rounded up. If it was met with a rate far too high,
// what was served until then is the vendor's rate. What such a silence cost is its
// length less what spending the window too fast explains: P(1 - W/R). Some vendors
// count the last window on and tell the end of this one, so a told window may close
// when it has hardly begun. That is no sample, once running; the window that comes
// next is a whole one, and its count is exact. After a told time the pace begins
// with the first call, because such a vendor has one permit then. If a rate above W
// is served for longer than a search and a half, the limit rose: from then on it is
// raised by half in each period.
//
// # Told quotas
//
// See [Track]: the level line. Three readings that do not contradict each other
// must agree before a track binds, a level of fewer than four permits is too
// coarse to steer by, be that the limit or the most that was ever left, and
// three refusals that a track did not foresee end its say. A quota whose unit is
// concurrent-requests bounds the calls in flight as it says. A refusal that tells
// none of it left, and no time, lets fewer be in flight than when the refused call left,
// unless fifty calls went well before it, and starts no search for a rate; what answers
// tell to be left lets more be in flight again. If that call was alone, others have all
// places, and one call at a time asks for one, once a second or more often. A level that is not
// full shows the vendor's rate without one refusal; the pace is that rate plus
// what brings the level to its reserve in four round trips. If a window ends
// and little is left in the next, what was spent before counts on, and comes
// back at the limit over the window. A window is spent as calls come down to
// its reserve, and held for its end; while half of it and more is left, and lasts to its
// end, the rate rises by a twentieth with each call, and by 22 % in a round trip if it
// lasts twice as long; a first window of which nobody knows that
// it is one is asked again after a second.
//
// # How it is used
//
// A lane holds one State under one lock. For each answer it makes a Fact; if
// [State.Quiet] says so, the fact is left out, so a lane of which nothing was
// learned and for which nobody waits takes no lock. After each fact, and after
// each departure if [Plan.Told] is set, it asks for the Plan: Limits go beside
// the configured ones in the same limiter, tuned when [Plan.Changed]; Most bounds
// the calls in flight that left after Since, one at a time with a lease if Probe
// is set; nothing leaves before Hold. Permits must not be credited for lateness
// while Hold or Most stood in the way: Request.Since is at least the instant at
// which that ended. Configured limits stay as they are, so they are never
// exceeded; a Plan only delays.
//
// In a fleet the State is a versioned value in the store. Whoever saw the answer
// reads it, observes, and swaps it if the version is unchanged, else does it
// again on the newer one. Ordinals and Granted come from the store's own counter
// of grants. Lateness of facts is part of the round trip that is measured.
//
// # What was tried and dropped
//
//   - Halving U after a refusal near the middle of a search, and a floor under
//     the lower bound after a late one: with exact counts neither changed a row.
//   - A window as a hypothesis of its own, with its end and count: an even pace
//     and the cycle of silences reach its rows with half the state.
//   - Taking what left in the last period before a refusal for a full window: as
//     many rows lost by it as gained.
//   - The median of told resets: the earliest one of a window is exact to the
//     smallest fraction of a second at which an answer came.
//   - Probes twice as far apart each: fewer of them, but windows lose their
//     beginnings. Probes 2.5 times further apart each from the seventh of the first
//     silence on: a window that doubled was found after 153 s instead of 59 s.
//   - If refusals block: no bound above 1.2 times what was served, three fifths of the
//     estimate after an early refusal, and calls in flight as the hypothesis after the
//     second refusal with as many in flight: as many lanes were low, and more stuck.
//   - A weak pull of the level towards its reserve (0.25 s instead of four round
//     trips): an error of the slope then empties the bucket.
//   - Raising the rate by half in each period without a told time: searches in bare
//     windows then overshoot, and of an aligned 600/min 0.89 is used instead of 0.99.
//   - A reserve of a fifth for all told levels: with strangers taking half a bucket
//     of 20, 0.79 is used instead of 0.98. Levels below 16 keep a tenth.
//   - Counting what was refused alone as the level: with strangers, readings of
//     served calls are what shows them in time.
//   - Distrusting a track that explains more than three refusals in a hundred
//     calls: of random vendors 14.3 % were low instead of 12.0 %.
//   - Searches of six or ten told periods instead of three, or a told silence taken
//     to cost at least a quarter of a period: as many vendors lost by it as gained,
//     because a rise is found later, or more.
//   - Weighing a burst less as more refusals come early in their searches: 12.3 %
//     low instead of 12.0 %.
//   - Raising the rate faster after a search in told windows was not refused, from X =
//     1.2 on and by e to 0.8 in a period: 11.2 % low instead of 9.0 %, because sliding
//     counters punish each refusal by half a window. Two told periods for a search
//     instead of three, or a bound of 12 to 20 % a period on any rise: no fewer.
//   - A level that explained two refusals of late filled no faster than 1.3 times its
//     slope or its limit in its window: of 2,000 random vendors with quotas as many
//     lost by it as gained.
//   - Doubting a narrow estimate of told windows once if a count is a fifth below it,
//     and taking what the first window served for what one of the length that is told
//     next serves: of sliding counters 18 % were low instead of 23 %, but of all random
//     vendors 8.2 % instead of 7.8 %.
//   - Raising the rate by seven tenths in a period from X = 1.2 on: a quarter more of
//     steady windows were low.
//   - Going back to what was served before after longer silences or in windows, or after
//     twice as long each time instead of four times: 298 of 3,000 random vendors were low
//     instead of 258, most of them sliding counters.
//   - Bounding how fast a wide search rises, and taking what was served before a
//     refusal at the very beginning of a search for a burst: for lanes whose vendors
//     block, no fewer low ones.
package learn
