// Package harness is shared by the tests of the transport: a [Rig] is a Transport in front of a
// vendor, over pipes in a bubble or over sockets; a [Fleet] is replicas of one.
package harness
