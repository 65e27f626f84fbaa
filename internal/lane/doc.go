// Package lane holds the lanes of a client. For each key there is one queue
// over one limiter, and what the lane knows of its server. Lanes are kept in
// bounded tables. The package knows nothing of HTTP or telemetry; its owner's
// [Observer] does.
//
// In front of the store's limiter stands a gate, which holds calls for a long pause,
// for the calls in flight, and by what answers have taught.
package lane
