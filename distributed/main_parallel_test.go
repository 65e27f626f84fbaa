//go:build !race

package distributed_test

// together is how many parallel tests run at once: more than there are processors, because fleet
// tests mostly wait.
const together = "16"

// raced says that the tests run under the race detector.
const raced = false
