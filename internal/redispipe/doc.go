// Package redispipe is a Redis inside the process, for tests in synctest bubbles.
//
// A bubble's clock moves only while every goroutine of it waits, and a goroutine
// that reads a socket does not count as waiting. So the server, miniredis, is
// reached over net.Pipe, and all else is what users have: package distributed, its
// client go-redis, the protocol between them, the news, and the script, which
// gopher-lua runs. The clock of the server is that of the bubble.
//
// Package redistest starts real Redis processes. What hangs on Redis itself is
// tested there; what hangs on exact instants, or on more replicas than a machine
// has room for, is tested here.
package redispipe
