package redisserver

import (
	"flag"
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") == "" {
		_ = flag.Set("test.run", "^$") // a regular expression
	}
	os.Exit(m.Run())
}

func TestServerRuns(t *testing.T) {
	if out, err := exec.Command("redis-server", "--version").CombinedOutput(); err != nil {
		t.Errorf("redis-server --version: %v\n%s", err, out)
	}
}
