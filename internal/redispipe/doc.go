// Package redispipe is a Redis inside the process, for tests in synctest bubbles.
//
// A bubble's clock moves only while every goroutine of it waits, and a goroutine that reads a
// socket does not count as waiting. So the server, miniredis, is reached over net.Pipe, and the
// rest is real: package distributed, its client go-redis, the protocol between them, the published
// messages, and the script, which gopher-lua runs. The server's clock is the bubble's.
//
// Package redistest starts real Redis processes. Tests that depend on Redis itself use that. Tests
// that depend on exact instants, or on more replicas than a machine has room for, use this package.
package redispipe
