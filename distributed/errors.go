package distributed

import "github.com/weirgo/weir/distributed/internal/call"

// ErrClosed is matched by errors of a store that was closed.
var ErrClosed = call.ErrClosed

// ErrUnavailable is matched by the error with which [FailClosed] refuses.
var ErrUnavailable = call.ErrUnavailable
