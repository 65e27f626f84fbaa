package hostlocal

import (
	"errors"
	"io/fs"
	"syscall"
)

// causeOf returns in one word why a file cannot be used.
func causeOf(err error) string {
	switch {
	case errors.Is(err, errBusy):
		return "locked"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, fs.ErrNotExist):
		return "missing"
	case errors.Is(err, syscall.ENOSPC):
		return "full"
	default:
		return "error"
	}
}
