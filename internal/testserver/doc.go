// Package testserver holds vendors to test against: APIs with real limits, real header styles, and
// faults on a schedule.
//
// # Vendors
//
// A [Vendor] is an [http.Handler] that enforces its [Limit]s, reports them in its [Style]s, and
// breaks by its [Fault]s. It records every [Arrival] before anything else. So a test judges a
// client by what reached the vendor, never by the client's own counters. The vendor's arithmetic
// deliberately shares nothing with the code that it judges.
//
// A [Style] is how a vendor writes what it reports, and a [View] is what its numbers mean: [Seen]
// joins them. There are styles of named vendors, such as [OpenAI], and [Fields] make others.
//
// # Servers
//
// [Listen] serves a handler on a loopback port, [ListenTLS] does so with
// HTTP/2, and [Pipe] serves it over in-memory pipes, for a testing/synctest
// bubble. In a test, [Run] opens any of them and closes it when the test ends.
// Whatever host a request names, a [Server.Transport] dials the server: nothing
// leaves this machine.
//
// # The client's side
//
// A [Tap] records what leaves a client and what comes back. A [Ceiling] finds the calls in that
// record that departed although answers reported nothing left.
//
// # What an ordinary handler cannot do
//
// [Frames] answers HTTP/2 requests with frames that net/http's server does not
// send on demand. [Quirks] is a handler for the rarer corners of HTTP/1.
//
// The package is for tests and for the vendor inside the examples. It is simple and slow: do not
// limit a service with it.
package testserver
