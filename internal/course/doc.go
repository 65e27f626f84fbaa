// Package course makes a lane follow what its answers have taught, alone or together with the
// processes that share the lane. A [Course] observes the answers, keeps the learner's state and
// plan, and is one of the vetoes of a gate.
package course
