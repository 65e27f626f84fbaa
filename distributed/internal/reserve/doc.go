// Package reserve enforces the limits of a lane at one replica. A [Limiter] reserves permits
// in Redis for the callers in line, and keeps them in hand until they are due. It reports
// pauses, refunds and settlements, and passes on the messages of learners. While Redis does not
// answer, the policy for a loss holds.
package reserve
