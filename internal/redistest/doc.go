// Package redistest starts real Redis servers, alone, watched by sentinels or joined to a cluster.
// It breaks them, or the connections to them, on purpose.
//
// Everything is on the loopback interface and ends with the test. A broken fixture fails the test,
// with Fatal if the test cannot go on. So start fixtures, and wait for them, on the test's own
// goroutine. If redis-server is not installed the test is skipped, as internal/needs says.
//
// Do not use it inside a testing/synctest bubble: it has sockets.
package redistest
