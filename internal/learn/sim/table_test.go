package sim

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The rows and tests that the learner's comments name exist.
func TestNamedRowsAndTestsExist(t *testing.T) {
	read := func(root, ending string) (all string) {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(path, ending) {
				var text []byte
				text, err = os.ReadFile(path)
				all += string(text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	tests, rows := read("../../..", "_test.go"), Table()
	named := 0
	sources, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		text := strings.ReplaceAll(read(path, ".go"), "\n// ", " ")
		for _, list := range regexp.MustCompile(`[Rr]ows? ("[^"]+"(?:(?:,| and) "[^"]+")*)`).FindAllStringSubmatch(text, -1) {
			for _, name := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list[1], -1) {
				if named++; !slices.ContainsFunc(rows, func(r Row) bool { return strings.Contains(r.Name, name[1]) }) {
					t.Errorf("%s: no row is named %q", path, name[1])
				}
			}
		}
		for _, name := range regexp.MustCompile(`\bTest(?:s? "?)?([A-Z]\w+)`).FindAllStringSubmatch(text, -1) {
			if named++; !strings.Contains(tests, "func Test"+name[1]+"(") {
				t.Errorf("%s: no test is named %q", path, name[1])
			}
		}
	}
	if named < 50 {
		t.Errorf("%d rows and tests are named, want 50 at least", named)
	}
}
