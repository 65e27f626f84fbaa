package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirgo/weir"
)

// A better limit serves waiting calls, and a mistake changes nothing.
func TestConfigurationIsFollowed(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-for", "2s"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	const mistake = `nothing changed: weir: configuration: limits[0]: throttle: limit "40/q burst 4"`
	text := out.String()
	if strings.Count(text, "applied\n") != 2 || !strings.Contains(text, mistake) {
		t.Errorf("it printed %s, want two configurations applied and a mistake between", text)
	}
}

// The configuration of docs/limits.md is one.
func TestConfigurationOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of YAML, want one", len(blocks))
	}
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, blocks[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := load(path, new(weir.Transport)); err != nil {
		t.Error(err)
	}
}

func TestConfigurationThatIsWrongEndsTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte("limits: [1/s]\nlimits: [2/s]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-config", path}, &out, &errs); code != 1 || !strings.Contains(errs.String(), "limits") {
		t.Errorf("exit code %d, %s, want 1 and the duplicate key", code, &errs)
	}
	if err := load(filepath.Join(t.TempDir(), "none"), new(weir.Transport)); err == nil {
		t.Error("load of no file = nil, want an error")
	}
}
