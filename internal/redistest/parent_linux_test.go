package redistest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/weirgo/weir/internal/redistest"
)

// A killed test cannot clean up.
func TestServerEndsWithAKilledTest(t *testing.T) {
	const inner = "REDISTEST_INNER"
	if os.Getenv(inner) != "" {
		fmt.Println(redistest.Start(t).Addr())
		select {}
	}
	redistest.Start(t) // skips without a server
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inner+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	addr := lines.Text()
	if refused(addr) {
		t.Errorf("the server at %q does not accept", addr)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for !refused(addr) { // else this test ends at its time limit
	}
}
