//go:build !linux

package redistest

import (
	"errors"
	"io"
)

// blackHole is unsupported: a full queue answers here, or holds more than its backlog.
func blackHole(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
