package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/examples/internal/programtest"
)

// parentEnv makes this test the program itself.
const parentEnv = "WEIR_EXAMPLE_FLEET_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(taskEnv) != "" || os.Getenv(parentEnv) != "" {
		main() // as a child
		return
	}
	os.Exit(m.Run())
}

// runIn runs the program with its pictures in a new directory, and reports
// whether both are there afterwards.
func runIn(t *testing.T, ctx context.Context, args ...string) (code int, stdout string, pictures bool) {
	t.Helper()
	return programtest.Run(ctx, t, run, args...)
}

// all is the row of all replicas: sent, 429s, calls to Redis and starts.
var all = regexp.MustCompile(`(?m)^ +all +(\d+) +(\d+) +(\d+) +(\d+)$`)

func TestThreeReplicasShareOneLimit(t *testing.T) {
	code, stdout, pictures := runIn(t, t.Context(), "-n", "3", "-for", "3s", "-limit", "20/s burst 5")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	row := all.FindStringSubmatch(stdout)
	if row == nil || row[1] == "0" || row[2] != "0" || row[3] == "0" || row[4] != "3" {
		t.Errorf("row %q, want requests, no 429, calls to Redis and 3 starts\n%s", row, stdout)
	}
}

func TestInterruptEndsWithWhatItHas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	code, stdout, pictures := runIn(t, ctx, "-n", "2")
	if code != program.ExitInterrupted || !pictures || all.FindString(stdout) == "" {
		t.Errorf("exit %d, pictures %v, want %d, pictures and a table\n%s", code, pictures, program.ExitInterrupted, stdout)
	}
}

func TestInterruptBeforeTheFirstCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, stdout, _ := runIn(t, ctx, "-n", "2"); code != program.ExitInterrupted {
		t.Errorf("exit %d, want %d\n%s", code, program.ExitInterrupted, stdout)
	}
}

func TestRedisThatIsNotThere(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-redis", "127.0.0.1:1"}, &stdout, &stderr)
	if code != program.ExitFailed || !bytes.Contains(stderr.Bytes(), []byte("redis at 127.0.0.1:1")) {
		t.Errorf("exit %d, stderr %q, want exit %d and the address", code, &stderr, program.ExitFailed)
	}
}
