//go:build !race

package lanes_test

// fewer divides the calls of a test under the race detector, not here.
const fewer = 1
