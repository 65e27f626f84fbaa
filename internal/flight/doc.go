// Package flight keeps the calls in flight of one lane, in one [Table]. Everything that delays
// calls because of others without an answer reads it: a quota that the server reports, the probe
// after a pause, and the learner. A call is in flight here until its answer begins, or it has
// failed.
//
// Most lanes only count. [Table.Depart] and [Table.Answered] cost one compare-and-swap. Nothing is
// looked up, locked or allocated for that.
//
// If more must be known of a call than that it is in flight, [Table.Board] makes an entry, a
// [Call], under the table's lock. Its ID identifies it, because the queue keeps only that of a
// call; a pointer in the turn would move every request to the heap. Entries that have landed are
// reused.
//
// A call may never be answered. [Lease] is the longest wait for an answer. An overdue call counts
// no longer, see [Table.Lapse], but its entry stays until it lands.
//
// The package decides nothing: it reads no clock, and knows no limits.
package flight
