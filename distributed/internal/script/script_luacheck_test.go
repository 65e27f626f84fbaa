package script

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/weirgo/weir/internal/needs"
)

// A file of the script uses the names of those before it, so the linter receives what Redis
// receives. It finds names that are not local, unused or shadowed.
func TestScriptPassesLuacheck(t *testing.T) {
	for _, text := range []string{scriptSource, slotsSource} {
		check := exec.Command(needs.Program(t, "luacheck"), "--config", "../../../.luacheckrc", "--codes", "--no-color", "-")
		check.Stdin = strings.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("luacheck: %v\n%s", err, out)
		}
	}
}
