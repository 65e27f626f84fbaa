//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing on kernels without such a feature.
func dieWithParent(*exec.Cmd) {}
