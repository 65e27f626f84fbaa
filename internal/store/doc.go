// Package store holds the interfaces between lanes and a shared store beyond a [throttle.Limiter]:
// learned limits ([Learner], [Replicator]), calls in flight ([FlightStore], [Flights]), calls lent
// to a caller ([Lender]), and telemetry ([Watch]). Package distributed implements them, and package
// lane finds them by type assertion.
package store
