package recipes

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var headings = []string{"Insert", "Retries", "Bodies and cost", "Errors", "Traces"}

// Each page has the same headings, and its blocks are from the files that the other tests
// run.
func TestPagesShowRecipes(t *testing.T) {
	var sources [][]byte
	files, _ := filepath.Glob("*.go")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, text)
	}
	pages, _ := filepath.Glob("../../../docs/sdk/*.md")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(page) == "README.md" {
			continue
		}
		var found []string
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		if !slices.Equal(found, headings) {
			t.Errorf("%s has the headings %q, want %q", page, found, headings)
		}
		blocks := regexp.MustCompile("(?ms)^```go sdktest\n(.*?)^```").FindAllSubmatch(text, -1)
		for _, m := range blocks {
			if !slices.ContainsFunc(sources, func(s []byte) bool { return bytes.Contains(s, m[1]) }) {
				t.Errorf("%s has a block that is in no file here:\n%s", page, m[1])
			}
		}
		if len(blocks) == 0 {
			t.Errorf("%s has no block of a file here", page)
		}
	}
	if len(pages) < 8 {
		t.Errorf("%d pages were found, want the index and one for each SDK", len(pages))
	}
}
