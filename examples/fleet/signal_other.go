//go:build !unix

package main

import "errors"

// canHalt reports whether a process can be stopped for a while.
const canHalt = false

func (p *process) halt() error { return errors.ErrUnsupported }

func (p *process) resume() error { return errors.ErrUnsupported }
