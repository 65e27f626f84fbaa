package shaping_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/weirgo/weir/shaping"
)

// A wait that would end too late is a timeout for package net and for package context.
func TestErrDeadlineIsATimeout(t *testing.T) {
	for _, err := range []error{shaping.ErrDeadline, &shaping.Error{Err: shaping.ErrDeadline}} {
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, shaping.ErrDeadline) {
			t.Errorf("%v is no timeout", err)
		}
	}
	for _, err := range []error{shaping.ErrQueueFull, shaping.ErrClosed, &shaping.Error{Err: shaping.ErrQueueFull}} {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is a timeout", err)
		}
	}
}
