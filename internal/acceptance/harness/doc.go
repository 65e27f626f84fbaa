// Package harness is what the tests of the transport share: a [Rig] is a Transport in front
// of a vendor, over pipes in a bubble or over sockets; a [Fleet] is replicas of one.
package harness
