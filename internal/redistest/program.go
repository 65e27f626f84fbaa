package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir/internal/needs"
)

// ProgramEnv names the server to test against, instead of redis-server: the path of
// another version of Redis, or of a server that takes the same options, as Valkey and
// KeyDB do.
const ProgramEnv = "WEIR_REDIS_SERVER"

// A program is the server that the tests start.
type program struct {
	path  string
	text  string // as it reports itself
	major int    // of the Redis whose options it takes
}

var (
	lookUp   sync.Once
	looked   program
	lookedUp error
)

// theProgram returns the server to start, and skips the test if there is none.
func theProgram(tb testing.TB) program {
	tb.Helper()
	path := os.Getenv(ProgramEnv)
	if path == "" {
		path = needs.Program(tb, "redis-server")
	}
	lookUp.Do(func() { looked, lookedUp = identify(path) })
	if lookedUp != nil {
		tb.Fatalf("redistest: %v", lookedUp)
	}
	return looked
}

var versionOf = regexp.MustCompile(`v=(\d+)\.\S*`)

// identify asks a server for its version. KeyDB took its options from Redis 6.
func identify(path string) (program, error) {
	out, err := exec.Command(path, "--version").Output()
	p := program{path: path, text: strings.TrimSpace(string(out))}
	if err != nil {
		return p, fmt.Errorf("%s --version: %w", path, err)
	}
	m := versionOf.FindStringSubmatch(p.text)
	if m == nil {
		return p, fmt.Errorf("%s tells no version: %q", path, p.text)
	}
	p.major, _ = strconv.Atoi(m[1])
	if strings.Contains(strings.ToLower(p.text), "keydb") {
		p.major = 6
	}
	return p, nil
}

// Version returns the version that the tests' server reports.
func Version(tb testing.TB) string {
	tb.Helper()
	return theProgram(tb).text
}

// debugs returns the options that allow DEBUG, which older servers always allow.
func (p program) debugs() []string {
	if p.major < 7 {
		return nil
	}
	return []string{"--enable-debug-command", "yes", "--enable-protected-configs", "yes"}
}
