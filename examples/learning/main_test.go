package main

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/examples/internal/programtest"
)

// all is the row of both limits: served calls, possible calls, the share, 429s.
var all = regexp.MustCompile(`(?m)^ +all +(\d+) +(\d+) +([\d.]+|-) +(\d+)$`)

func TestShortRunFindsMostOfBothLimits(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, run, "-for", "4s")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	row := all.FindStringSubmatch(stdout)
	if row == nil {
		t.Fatalf("no row of both limits\n%s", stdout)
	}
	served, could, refused := number(t, row[1]), number(t, row[2]), number(t, row[4])
	if served < could/2 || refused == 0 || refused > served/5 {
		t.Errorf("row %q, want half of the possible calls, and few 429s but at least one, or the limit stays hidden\n%s", row, stdout)
	}
	if !strings.Contains(stdout, "of 50/s") || !strings.Contains(stdout, "of 100/s") {
		t.Errorf("no line a second, or one limit only\n%s", stdout)
	}
}

func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInterruptEndsWithWhatItHas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	code, stdout, pictures := programtest.Run(ctx, t, run)
	if code != program.ExitInterrupted || !pictures || all.FindString(stdout) == "" {
		t.Errorf("exit %d, pictures %v, want %d, pictures and a table\n%s", code, pictures, program.ExitInterrupted, stdout)
	}
}

func TestInterruptBeforeTheFirstCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, stdout, pictures := programtest.Run(ctx, t, run); code != program.ExitInterrupted || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
}

func TestBadFlagIsNamedWithItsValue(t *testing.T) {
	for args, want := range map[string]string{
		"-for 10":          `"10"`,
		"-for 0s":          "-for 0s: want 1s to 5m0s",
		"-for 1h":          "-for 1h0m0s",
		"-o no/such/dir/x": "no/such/dir/ is no directory",
		"extra":            `"extra"`,
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &stdout, &stderr)
		if code != program.ExitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d, stderr %q; want exit %d and %s", args, code, &stderr, program.ExitUsage, want)
		}
	}
}

func TestHelpNamesTheFlags(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-h"}, &stdout, &stderr)
	if help := stdout.String(); code != 0 || !strings.Contains(help, "-for") || !strings.Contains(help, "-o ") {
		t.Errorf("exit %d, help %q", code, help)
	}
}
