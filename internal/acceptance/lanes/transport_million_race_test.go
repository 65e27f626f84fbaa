//go:build race

package lanes_test

// fewer divides the calls of a test under the race detector, which makes them ten times slower.
const fewer = 5
