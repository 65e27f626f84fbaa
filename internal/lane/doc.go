// Package lane holds the lanes of a client. For each key there is one queue
// over one limiter, and what the lane knows of its server. Lanes are kept in
// bounded tables. The package knows nothing of HTTP or telemetry; its owner's
// [Observer] does.
//
// In front of the store's limiter stands a gate, which holds calls for a long pause,
// for the calls in flight, and by what answers have taught.
//
// # Why sub-lanes wait one after the other
//
// A call of several keys waits in one [Group] for all of its lanes. A call passes its
// sub-lanes one after the other instead, and then its lanes. A sub-lane in the group would
// need a roster in front of the lane's gate. Without several keys the lane has a queue there
// already, and a gate serves one line:
//
//   - It wakes only the line that registered last. At one call in flight, a caller waits in
//     the queue. A group is made, and the call in flight ends a second later. The caller is
//     not woken, and waits until its context ends.
//   - Two lines keep no common order. At 1/s eight bulk calls wait in the queue, and three
//     urgent ones in a group. The last urgent one may leave after 10 s, instead of 3 s.
//
// If all calls of such a lane waited in groups, each route's group would take turns with the
// others. At 1/s nine calls of one route wait, and then one of another comes. It would leave
// after 2 s, instead of 9 s. A call of any route would allocate its grants, too: 192 bytes.
//
// What this costs: a call that has passed a sub-lane counts there while a lane holds it. Two
// customers have keys of their own, and call one route of a bucket of 5 in 5 s. One customer's
// lane holds eight calls of it for 30 s. The other's first call takes 7 s, instead of 20 ms.
//
// With several keys all calls wait in groups, and sub-lanes can join them: that first call took
// 20 ms in a trial. It takes more than [shaping.MaxRosters] rosters, and leaves two ways to wait.
// For one way, the lane's queue would have to become a roster while calls wait in it. That has
// not been tried. The order of arrival and the allocation would still be lost.
package lane
