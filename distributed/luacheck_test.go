package distributed

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A file of the script uses the names of those before it, so that the linter is
// given what Redis is given. It finds a name that is not local, one that nobody
// uses, and one that hides another.
func TestScriptPassesLuacheck(t *testing.T) {
	program, err := exec.LookPath("luacheck")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI is set: %v", err)
		}
		t.Skipf("left out: %v", err)
	}
	check := exec.Command(program, "--config", "../.luacheckrc", "--codes", "--no-color", "-")
	check.Stdin = strings.NewReader(scriptText())
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("luacheck: %v\n%s", err, out)
	}
}
