// Package call makes the calls of lanes to Redis, for permits and for slots alike. A [Hub] is what
// the lanes of a store share. A [Link] is its connection while one is open: nodes, messages between
// replicas, and lines of log. A [Caller] makes the calls of one lane, one at a time. A [Clock]
// converts instants, and a [Trip] estimates round trips.
package call
