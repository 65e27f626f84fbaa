// Package lane holds the lanes of a client. For each key there is one queue
// over one limiter, and what the lane knows of its server. Lanes are kept in
// bounded tables. The package knows nothing of HTTP or telemetry; its owner's
// [Observer] does.
//
// In front of the store's limiter is a gate. It holds calls during a long pause, for calls in
// flight, and by learned limits.
//
// # Several lanes at once
//
// A call waits for its lanes, and for the sub-lanes that concern it, together. While one of them
// holds the call, nothing of the others is spent, and the call delays nobody there. A call of
// one lane alone waits in that lane's queue, which costs no allocation. Others wait in a [Group].
// The first group of a lane opens a roster in front of its limiter, see
// [shaping.Junction.NewRoster]. From then on the queue is one line with those of the groups, and
// calls that wait in it keep their places.
//
// A sub-lane is a part, see [shaping.Junction.NewPart]: calls of one customer keep the order in
// which they came, whatever their routes. A customer of many routes has one share of the account.
//
// A call may learn of a sub-lane while it waits, because an answer has named its bucket. It then
// gives its permits back when its turn comes. It waits anew in a group with that sub-lane, at
// the place of its first arrival.
package lane
