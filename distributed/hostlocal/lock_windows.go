package hostlocal

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	lockExclusive   = 2
	lockImmediately = 1
	lockAt          = 1 << 30 // beyond what is stored: a locked range cannot be read by others

	errorLockViolation syscall.Errno = 33
)

// openFile opens a file of a lane, and makes it if it is missing.
func openFile(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) }

// checkDir returns nil: the access control list of a directory in a user's profile excludes other
// users.
func checkDir(string) error { return nil }

// tryLock locks a file, and reports whether it could. The lock ends with the process.
func tryLock(f *os.File) (bool, error) {
	at := syscall.Overlapped{Offset: lockAt}
	ok, _, err := lockFileEx.Call(f.Fd(), lockExclusive|lockImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	default:
		return false, os.NewSyscallError("LockFileEx", err)
	}
}

// unlock unlocks a file.
func unlock(f *os.File) {
	at := syscall.Overlapped{Offset: lockAt}
	_, _, _ = unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at)))
}
