//go:build race

package distributed_test

// together is how many parallel tests run at once.
const together = "8"

// raced says that the tests run under the race detector.
const raced = true
