// Package fakestore is a remote store without the remote: several replicas
// share the limits that a [Server] keeps, at the price of a round trip. It shows
// that a store which may not decide in the call fits behind the interfaces of
// package throttle, and stands in for one in tests, in bubbles too.
//
// A replica's limiter spends only permits it holds: dated ones, of a run that it
// fetched for who stands in line. Take never blocks; where no permit is at hand
// it says when to ask again, or that only news can tell.
package fakestore
