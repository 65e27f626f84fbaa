//go:build !linux

package main

import "os/exec"

// dieWithParent does nothing on kernels without such a feature.
func dieWithParent(*exec.Cmd) {}
