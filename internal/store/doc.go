// Package store is what lanes and a shared store say to each other beyond a
// [throttle.Limiter]: learned limits ([Learner], [Replicator]), calls in flight ([FlightStore],
// [Flights]), calls lent to a caller ([Lender]), and telemetry ([Watch]). Package distributed
// implements these interfaces, and package lane finds them by type assertion.
package store
