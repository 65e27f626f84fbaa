//go:build !linux

package redistest

import (
	"errors"
	"io"
)

// blackHole is not had where a full queue answers, or holds more than it is
// said to.
func blackHole(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
