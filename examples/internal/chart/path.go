package chart

import (
	"fmt"
	"os"
	"path/filepath"
)

// CheckPath returns an error where [Picture.Write] could not write path.svg:
// before a run, not after it.
func CheckPath(path string) error {
	dir, file := filepath.Split(path)
	if file == "" {
		return fmt.Errorf("%q: want the name of a file, without extension", path)
	}
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%q: %s is no directory", path, dir)
	}
	return nil
}

// Files names what [Picture.Write] wrote, in full.
func Files(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return fmt.Sprintf("%s.svg and %s.png", path, path)
}
