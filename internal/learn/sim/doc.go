// Package sim plays vendors, connections to them and the demand in virtual time, to test what is
// learned. It drives the gate of package lane, and has only the line in front of it and the clock
// of its own.
package sim
