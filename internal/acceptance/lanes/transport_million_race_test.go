//go:build race

package lanes_test

// fewer divides the calls of a test under the race detector, which makes them
// ten times as dear.
const fewer = 5
