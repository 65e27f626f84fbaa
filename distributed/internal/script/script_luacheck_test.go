package script

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/weirgo/weir/internal/needs"
)

// A file of the script uses the names of those before it, so that the linter is
// given what Redis is given. It finds a name that is not local, one that nobody
// uses, and one that hides another.
func TestScriptPassesLuacheck(t *testing.T) {
	for _, text := range []string{scriptText(), slotsText()} {
		check := exec.Command(needs.Program(t, "luacheck"), "--config", "../../../.luacheckrc", "--codes", "--no-color", "-")
		check.Stdin = strings.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("luacheck: %v\n%s", err, out)
		}
	}
}
