//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing where the kernel has no such promise.
func dieWithParent(*exec.Cmd) {}
