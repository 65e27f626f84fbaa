//go:build unix && !solaris && !illumos && !aix

package hostlocal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openFile opens a file of a lane, and makes it if it is missing. A symbolic link, or a
// file of another user, is an error.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := owned(f, 0o077); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// checkDir returns an error if other users may change what is in a directory.
func checkDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return owned(d, 0o022)
}

// owned returns an error unless a file is this user's, and others have none of the
// permissions in mask.
func owned(f *os.File, mask os.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d", f.Name(), stat.Uid, os.Geteuid())
	}
	if mode := info.Mode(); mode.Perm()&mask != 0 {
		return fmt.Errorf("%s has mode %v: other users may change it", f.Name(), mode)
	}
	return nil
}

// tryLock locks a file, and reports whether it could. The lock ends with the process.
func tryLock(f *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// unlock unlocks a file.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
