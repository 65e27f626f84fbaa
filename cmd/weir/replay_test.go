package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runs runs the program, and returns its exit code and output.
func runs(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, console{strings.NewReader(in), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

const threeAtOnce = "1795176000.1\n1795176000.1\n1795176000.1\n1795176010.5\n"

func TestReplayPrintsATable(t *testing.T) {
	code, out, errs := runs(t, threeAtOnce, "replay", "-limit", "1/s burst 1", "-", "-limit", "10/s burst 3, 5/h fixed", "-max-wait", "1500ms")
	want := `4 calls in 10.4s, 0.288/s on average
most in any  100ms: 3  1s: 3  10s: 3

                    limit  at once  held  p50 wait  p99 wait  longest  longest line  rejected by 1.5s
              1/s burst 1        2     2        0s        2s       2s             2          1 (25 %)
  10/s burst 3, 5/h fixed        4     0        0s        0s       0s             0           0 (0 %)
`
	if code != 0 || errs != "" || out != want {
		t.Errorf("replay = %d, %s\n%s\nwant\n%s", code, errs, out, want)
	}
}

func TestReplaySaysThatItSpreads(t *testing.T) {
	in := "1795176000\n1795176000\n1795176001\n"
	if _, out, _ := runs(t, in, "replay", "-limit", "2/s burst 1", "-"); !strings.Contains(out, "moved apart evenly") || !strings.Contains(out, "3     0") {
		t.Errorf("replay = %s, want calls moved apart, of which none waits", out)
	}
	if _, out, _ := runs(t, in, "replay", "-limit", "2/s burst 1", "-spread=false", "-"); strings.Contains(out, "moved apart evenly") || !strings.Contains(out, "2     1") {
		t.Errorf("replay -spread=false = %s, want one call that waits", out)
	}
}

func TestReplayDraws(t *testing.T) {
	for ext, magic := range map[string]string{".svg": "<?xml", ".png": "\x89PNG"} {
		path := filepath.Join(t.TempDir(), "picture"+ext)
		if code, _, errs := runs(t, threeAtOnce, "replay", "-limit", "1/s burst 1", "-o", path, "-"); code != 0 {
			t.Fatalf("replay -o = %d, %s", code, errs)
		}
		if text, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(text, []byte(magic)) {
			t.Errorf("%s = %.20q, %v, want it to begin with %q", path, text, err, magic)
		}
	}
}

// A wrong call is reported with its cause, and has an exit code of its own.
func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string // in what is printed
	}{
		{nil, 2, "usage:"},
		{[]string{"help"}, 0, "weir replay -limit"},
		{[]string{"version"}, 0, "0."},
		{[]string{"play"}, 2, `unknown command "play"`},
		{[]string{"replay", "-h"}, 0, "-max-wait"},
		{[]string{"replay", "-"}, 2, "no -limit"},
		{[]string{"replay", "-limit", "1/s"}, 2, "0 files"},
		{[]string{"replay", "-limit", "1/q", "-"}, 2, `limit "1/q"`},
		{[]string{"replay", "-limit", "1/s", "-o", "a.gif", "-"}, 2, `"a.gif" ends neither`},
		{[]string{"replay", "-limit", "1/s", "-format", "xml", "-"}, 2, `format "xml"`},
		{[]string{"replay", "-limit", "1/s", "-max-wait", "-1s", "-"}, 2, "is negative"},
		{[]string{"replay", "-limit", "1/s", "no-such-file"}, 1, "no-such-file"},
		{[]string{"replay", "-limit", "1/s", "-"}, 1, "-: no times"},
		{[]string{"replay", "-volume", "11"}, 2, "-volume"},
	} {
		code, out, errs := runs(t, "", tt.args...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) {
			t.Errorf("weir %q = %d, %q, %q, want %d and %q", tt.args, code, out, errs, tt.code, tt.want)
		}
	}
}
