// Package needs finds what a test needs that is not Go: a program, or a signal.
// A test that lacks it is left out, and fails if CI is set in the environment,
// for CI leaves nothing out.
//
// The go command shows what a passing package prints only with -v. Without it one
// line still tells: that of internal/needs/redis-server, whose one test is not run
// if there is no such program.
package needs

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	mu      sync.Mutex
	leftOut = map[string]int{} // tests, by what they lacked
)

// Program returns the path of a program, and leaves the test out if there is none.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Lacks(tb, name)
	}
	return path
}

// Lacks leaves the test out for want of something.
func Lacks(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("there is no %s, and CI is set", what)
	}
	mu.Lock()
	leftOut[what]++
	mu.Unlock()
	tb.Skipf("there is no %s", what)
}

// Exit says in one line how many tests were left out, and ends the process with
// the code. It is for TestMain.
func Exit(code int) {
	tell(os.Stdout)
	os.Exit(code)
}

func tell(w io.Writer) {
	mu.Lock()
	defer mu.Unlock()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(leftOut)) {
		parts = append(parts, fmt.Sprintf("%d for want of %s", leftOut[what], what))
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "tests left out: %s\n", strings.Join(parts, ", "))
	}
}
