// Package redistest starts real Redis servers, alone, watched by sentinels or
// joined to a cluster, and breaks them, or the way to them, on purpose.
//
// All is on the loopback interface and ends with the test. What goes wrong
// with a fixture itself fails the test, and with Fatal if the test cannot go
// on, so that a fixture is started, and asked to wait for something, on the
// test's own goroutine. If redis-server is not installed the test is
// left out, as internal/needs says.
//
// Do not use it inside a testing/synctest bubble: it has sockets.
package redistest
