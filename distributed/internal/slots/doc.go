// Package slots bounds the calls in flight of all replicas together: [Lane] leases slots
// from Redis, and due.go says when a call for them is due.
package slots
