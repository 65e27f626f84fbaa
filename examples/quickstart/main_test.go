package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/examples/internal/programtest"
)

// runIn runs the program with its pictures in a new directory, and reports
// whether both are there afterwards.
func runIn(t *testing.T, ctx context.Context, args ...string) (code int, stdout string, pictures bool) {
	t.Helper()
	return programtest.Run(ctx, t, run, args...)
}

func TestSmallRunAgainstEmbeddedVendor(t *testing.T) {
	code, stdout, pictures := runIn(t, t.Context(), "-n", "25", "-workers", "25")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	rows := tableRows(stdout)
	if plain := rows["plain"]; len(plain) < 5 || plain[4] == "0" {
		t.Errorf("plain row %v, want 429s: 25 calls at once meet a burst of 10", plain)
	}
	for _, name := range []string{"learning", "limited"} {
		if row := rows[name]; len(row) < 5 || row[1] != "25" || row[2] != "0" {
			t.Errorf("%s row %v, want 25 calls, 0 failed", name, row)
		}
	}
	if !strings.Contains(stdout, "throttle.TokenBucket(50, time.Second, 8)") {
		t.Error("the line that changed is not shown")
	}
}

// tableRows returns the fields of the table's rows by client.
func tableRows(stdout string) map[string][]string {
	rows := map[string][]string{}
	_, table, _ := strings.Cut(stdout, "  client ")
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 10 && !strings.HasSuffix(fields[0], ":") {
			rows[fields[0]] = fields
		}
	}
	return rows
}

func TestInterruptEndsWithWhatItHas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	code, stdout, pictures := runIn(t, ctx)
	if code != program.ExitInterrupted || !pictures {
		t.Errorf("exit %d, pictures %v, want exit %d and pictures\n%s", code, pictures, program.ExitInterrupted, stdout)
	}
	if !strings.Contains(stdout, "plain: interrupted") || tableRows(stdout)["plain"] == nil {
		t.Errorf("no row of what happened so far\n%s", stdout)
	}
}

func TestInterruptBeforeTheFirstCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, stdout, pictures := runIn(t, ctx); code != program.ExitInterrupted || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
}

func TestOwnEndpointGetsWeirOnly(t *testing.T) {
	var requests int
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer server.Close()
	address := strings.Replace(server.URL, "//", "//user:hunter2@", 1) + "/path?key=hunter2"
	code, stdout, _ := runIn(t, t.Context(), "-url", address, "-n", "3", "-rate", "100", "-workers", "1")
	if code != 0 || requests != 3 {
		t.Errorf("exit %d, %d requests, want 0 and 3\n%s", code, requests, stdout)
	}
	if rows := tableRows(stdout); len(rows) != 1 || rows["limited"] == nil {
		t.Errorf("rows %v, want one, of Weir with a limit\n%s", rows, stdout)
	}
	if strings.Contains(stdout, "hunter2") {
		t.Errorf("a secret is printed\n%s", stdout)
	}
}

func TestFailureThroughWeirIsTheExitCode(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	code, stdout, pictures := runIn(t, t.Context(), "-url", server.URL+"/?key=hunter2", "-n", "1")
	if code != program.ExitFailed || !pictures || !strings.Contains(stdout, "404 Not Found") {
		t.Errorf("exit %d, pictures %v, want %d, pictures and the cause\n%s", code, pictures, program.ExitFailed, stdout)
	}
	server.Close()
	code, stdout, _ = runIn(t, t.Context(), "-url", "http://127.0.0.1:1/?key=hunter2", "-n", "1")
	if code != program.ExitFailed || strings.Contains(stdout, "hunter2") {
		t.Errorf("exit %d, want %d and no secret\n%s", code, program.ExitFailed, stdout)
	}
}
