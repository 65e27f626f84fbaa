//go:build !linux

package shaping

// newKernelTimer returns nil: the runtime's timer paces the departures.
func newKernelTimer(func()) alarm { return nil }
