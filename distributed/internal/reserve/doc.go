// Package reserve enforces the limits of a lane at one replica. A [Limiter] reserves permits
// in Redis for the callers in line, keeps them in hand until they are due, and reports pauses,
// corrections and what was learned. While Redis does not answer it enforces a share of the limits.
package reserve
