// Package sim plays vendors, the way to them and the demand in virtual time, to try
// what is learned of them. It drives the gate of package lane, and keeps only the line
// in front of it and the clock.
package sim
