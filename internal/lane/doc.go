// Package lane holds the lanes of a client. For each key there is one queue
// over one limiter, and what the lane knows of its server. Lanes are kept in
// bounded tables. The package knows nothing of HTTP or telemetry; its owner's
// [Observer] does.
//
// In front of the store's limiter is a gate. It holds calls during a long pause, for calls in
// flight, and by learned limits.
//
// # Several keys
//
// A call of several keys waits in one [Group] for all of its lanes, and for the sub-lanes that
// concern it. While one of them holds the call, nothing of the others is spent, and the call
// delays nobody there. A sub-lane is a part, see [shaping.Junction.NewPart]: calls of one
// customer keep the order in which they came, whatever their routes. A customer of many routes
// has one share of the account.
//
// A call may learn of a sub-lane while it waits, because an answer has named its bucket. It then
// gives its permits back when its turn comes. It waits anew in a group with that sub-lane, at
// the place of its first arrival.
//
// # Why calls of one key pass sub-lanes one after the other
//
// Calls of one key wait in the queue of their lane, and a few of them pass sub-lanes before. A
// group would need a roster in front of the lane's gate, which serves one line:
//
//   - It wakes only the line that registered last. At one call in flight, a caller waits in
//     the queue. A group is made, and the call in flight ends a second later. The caller is
//     not woken, and waits until its context ends.
//   - Two lines keep no common order. At 1/s eight bulk calls wait in the queue, and three
//     urgent ones in a group. The last urgent one may leave after 10 s, instead of 3 s.
//
// All calls of a lane would have to wait in groups, as they do with several keys. That costs a
// call of one key an allocation, 112 bytes for its grants.
//
// What this costs: a call that has passed a sub-lane counts there while its lane holds it.
// Another lane has other sub-lanes, so this delays calls of the same lane alone.
package lane
