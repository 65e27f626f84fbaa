package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestNoAccountWaitsForAnother(t *testing.T) {
	var out bytes.Buffer
	failed, err := run(t.Context(), &out, "")
	if err != nil || failed > 0 {
		t.Fatalf("%d failed, error %v\n%s", failed, err, &out)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+len(accounts) {
		t.Fatalf("%d lines, want one and one per account\n%s", len(lines), &out)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "acme") {
		t.Errorf("the last to end is not the busy account: %s", last)
	}
	if strings.Contains(out.String(), "key-of") {
		t.Errorf("an API key is printed\n%s", &out)
	}
}

func TestInterruptEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if failed, err := run(ctx, &out, ""); err != nil || failed == 0 {
		t.Errorf("%d failed, error %v, want all and none", failed, err)
	}
}
