// Package programtest runs an example program that draws pictures.
package programtest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Run runs a program with its pictures in a new directory, and reports whether both are there
// afterwards. Output on stderr fails the test.
func Run(ctx context.Context, t *testing.T, run func(ctx context.Context, args []string, stdout, stderr io.Writer) int, args ...string) (code int, stdout string, pictures bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pic")
	var out, errOut bytes.Buffer
	code = run(ctx, append(args, "-o", path), &out, &errOut)
	if errOut.Len() > 0 {
		t.Errorf("stderr: %s", &errOut)
	}
	return code, out.String(), written(path+".svg") && written(path+".png")
}

func written(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}
