//go:build !windows && (!unix || solaris || illumos || aix)

package hostlocal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func openFile(path string) (*os.File, error) {
	return nil, fmt.Errorf("%s: files cannot be locked on %s: %w", path, runtime.GOOS, errors.ErrUnsupported)
}

func checkDir(string) error            { return nil }
func tryLock(f *os.File) (bool, error) { return false, errors.ErrUnsupported }
func unlock(f *os.File)                {}
