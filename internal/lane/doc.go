// Package lane holds the lanes of a client. For each key there is one queue
// over one limiter, and what the lane knows of its server. Lanes are kept in
// bounded tables. The package knows nothing of HTTP or telemetry; its owner's
// [Observer] does.
//
// A gate stands in front of the store's limiter. It closes for a long pause,
// and holds calls to what a [Course] has learned from their answers.
package lane
