package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/examples/internal/programtest"
)

// first is the row of the passwords that go first: came, sent.
var first = regexp.MustCompile(`(?m)^ *passwords first +passwords +(\d+) +(\d+) `)

func TestShortRunSendsThePasswordsFirst(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, sms.Exit, "-for", "4s")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	row := first.FindStringSubmatch(stdout)
	// The last one may have come at the end.
	if row == nil || row[1] == "0" || row[2] == "0" {
		t.Errorf("row %q, want passwords that were sent\n%s", row, stdout)
	}
}

func TestInterruptEndsWithWhatItHas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	code, stdout, pictures := programtest.Run(ctx, t, sms.Exit)
	if code != program.ExitInterrupted || !pictures || !strings.Contains(stdout, "campaign") {
		t.Errorf("exit %d, pictures %v, want %d, pictures and a table\n%s", code, pictures, program.ExitInterrupted, stdout)
	}
}

func TestBadFlagIsNamedWithItsValue(t *testing.T) {
	for args, want := range map[string]string{
		"-for 10":          `"10"`,
		"-for 1h":          "-for 1h0m0s: want 1s to 5m0s",
		"-o no/such/dir/x": "no/such/dir/ is no directory",
		"extra":            `"extra"`,
	} {
		var stdout, stderr bytes.Buffer
		code := sms.Exit(t.Context(), strings.Fields(args), &stdout, &stderr)
		if code != program.ExitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d, stderr %q; want exit %d and %s", args, code, &stderr, program.ExitUsage, want)
		}
	}
}
