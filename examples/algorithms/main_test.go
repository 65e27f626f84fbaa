package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The page docs/algorithms.md has this program's table and pictures.
func TestPageIsUpToDate(t *testing.T) {
	const docs = "../../docs"
	dir := t.TempDir()
	var table strings.Builder
	if err := run(dir, &table); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(docs, "algorithms.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("the page lacks the table\n%s", &table)
	}
	for _, s := range subjects {
		drawn, err := os.ReadFile(filepath.Join(dir, s.file+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join(docs, "pictures", s.file+".svg"))
		// Other platforms may round a multiplication and an addition once, so a digit differs.
		if err != nil || runtime.GOARCH == "amd64" && !bytes.Equal(kept, drawn) {
			t.Errorf("%s.svg is not what is drawn now (%v): go -C examples run ./algorithms -o ../docs/pictures", s.file, err)
		}
		if !strings.Contains(string(page), "](pictures/"+s.file+".svg)") {
			t.Errorf("the page does not show %s.svg", s.file)
		}
	}
}
