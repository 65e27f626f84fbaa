// Package gate is between a lane's queue and the limiter of its limits. A [Gate] is a
// [throttle.Limiter] itself: the store's limiter and, in front of it, a list of vetoes, each of
// which may hold a call:
//
//	pause    the server has asked for a longer pause than callers wait through
//	bound    the most allowed calls are in flight, here or in all processes
//	ledgers  the reported rest of a quota is in flight
//	course   the limit learned from answers, see package course
//
// A call departs if all of them and the limiter allow it. [Gate.Take] asks the vetoes
// in this order, then the limiter, and then boards with each. If one does not let it
// board after all, those before it take it back, and the limiter takes back its permits:
//
//	ask, ask, ask, ask, Take, board, board, refused: leave, leave, Refund
//
// All of this is done under one lock, that of the lane's table of calls in flight, so a
// call is counted by all vetoes or by none. [Gate.Refund] is the same undo.
//
// Most lanes have neither learned limits nor bounds. Their gate is calm: a departure costs the
// limiter's Take and one compare-and-swap, no lock and no allocation.
//
// Only a pause is certain. [Gate.Forecast], on which callers are rejected, takes from the other
// vetoes only the reason of a wait, without an instant.
//
// Answers go the other way. [Gate.Landed] passes them to the course, and takes the call off the
// table. That may let others depart: then waiting callers are woken.
package gate
