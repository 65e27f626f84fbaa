// Package needs finds a test's requirements beyond Go: a program, or a signal. Without them the
// test is skipped, or fails if CI is set in the environment, because CI skips nothing.
//
// The go command shows what a passing package prints only with -v. Without it one line still shows
// skipped tests: that of internal/needs/redis-server, whose only test is not run without the
// program.
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
	leftOut = map[string]int{} // skipped tests, by the missing requirement
)

// Program returns the path of a program, and skips the test if there is none.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Lacks(tb, name)
	}
	return path
}

// Lacks skips the test for lack of a requirement.
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

// Exit prints in one line how many tests were skipped, and ends the process with the code. It is
// for TestMain.
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
