package main

import (
	"context"
	"testing"
	"time"
)

func TestPageEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := run(ctx, "localhost:0", 3, false); err != nil {
		t.Error(err)
	}
}
