// Package testserver holds vendors to test against: APIs with real limits, the
// header styles that are found in the wild, and faults on a schedule.
//
// # Vendors
//
// A [Vendor] is an [http.Handler] that enforces its [Limit]s, tells of them in
// its [Style]s, and breaks as its [Fault]s say. It records every [Arrival]
// before it does anything else with it. So a test judges a client by what
// reached the vendor, and never by the client's own counters. The vendor's
// arithmetic shares nothing with the code that it judges, on purpose.
//
// A [Style] is how a vendor writes what it reports, and a [View] is what it means
// by that: [Seen] joins them. There are styles of vendors by name, such as
// [OpenAI], and [Fields] make others.
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
// A [Tap] records what leaves a client and what comes back. A [Ceiling] finds the
// calls in that record that left although answers reported nothing left for them.
//
// # What an ordinary handler cannot do
//
// [Frames] answers HTTP/2 requests with frames that net/http's server does not
// send on demand. [Quirks] is a handler for the rarer corners of HTTP/1.
//
// The package is for tests and for the vendor inside the examples. It is slow
// and simple where a limiter would be fast: do not limit a service with it.
package testserver
