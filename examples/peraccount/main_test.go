package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/examples/internal/programtest"
)

func TestNoAccountWaitsForAnother(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, peraccount)
	if code != 0 || !pictures {
		t.Fatalf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	table, _, _ := strings.Cut(stdout, "\n\n")
	lines := strings.Split(table, "\n")
	if len(lines) != 1+len(accounts) {
		t.Fatalf("%d lines, want one and one per account\n%s", len(lines), stdout)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "acme") {
		t.Errorf("the last to end is not the busy account: %s", last)
	}
	if strings.Contains(stdout, "key-of") {
		t.Errorf("an API key is printed\n%s", stdout)
	}
}

func TestInterruptEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, pictures := programtest.Run(ctx, t, peraccount)
	if code != program.ExitInterrupted || !pictures {
		t.Errorf("exit %d, pictures %v, want %d and an empty picture\n%s", code, pictures, program.ExitInterrupted, stdout)
	}
}

func TestBadFlagIsNamedWithItsValue(t *testing.T) {
	for args, want := range map[string]string{
		"-out x":           "-out",
		"-o no/such/dir/x": "no/such/dir/ is no directory",
		"extra":            `"extra"`,
	} {
		var stdout, stderr bytes.Buffer
		code := peraccount(t.Context(), strings.Fields(args), &stdout, &stderr)
		if code != program.ExitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d, stderr %q; want exit %d and %s", args, code, &stderr, program.ExitUsage, want)
		}
	}
}
