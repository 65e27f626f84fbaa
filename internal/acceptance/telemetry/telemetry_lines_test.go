package telemetry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources returns the syntax of the module's files below dir, except its tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != filepath.Clean(root) {
				return fs.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// literals returns the matching texts below dir.
func literals(t *testing.T, dir string, match *regexp.Regexp) (all []string) {
	t.Helper()
	for _, file := range sources(t, filepath.Clean(dir)) {
		ast.Inspect(file, func(n ast.Node) bool {
			if text := textOf(n); match.MatchString(text) {
				all = append(all, text)
			}
			return true
		})
	}
	return all
}

// logLines returns each line of log in a source, with its level if that is fixed. Most lines of the
// store need faults that no test of a Transport causes.
func logLines(t *testing.T) (lines []string) {
	t.Helper()
	for _, file := range sources(t, filepath.Clean(root)) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				lines = append(lines, linesOf(n)...)
			case *ast.KeyValueExpr: // of a table of lines
				if text := textOf(n.Value); strings.HasPrefix(text, "weir: ") {
					lines = append(lines, "- "+text)
				}
			}
			return true
		})
	}
	if len(lines) < 20 {
		t.Fatalf("%d lines of log were found, want 20 at least: %q", len(lines), lines)
	}
	return lines
}

// linesOf returns the line of a logging call, and none for another call.
func linesOf(call *ast.CallExpr) []string {
	logs, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"log", "warn", "Log", "LogAttrs", "Debug", "Info", "Warn", "Error"}, logs.Sel.Name) {
		return nil
	}
	if on, ok := logs.X.(*ast.Ident); ok && on.Name == "http" { // http.Error answers a request
		return nil
	}
	level := strings.ToUpper(logs.Sel.Name)
	for _, arg := range call.Args {
		if l, ok := arg.(*ast.SelectorExpr); ok && strings.HasPrefix(l.Sel.Name, "Level") {
			level = strings.ToUpper(strings.TrimPrefix(l.Sel.Name, "Level"))
		}
		if text := textOf(arg); strings.HasPrefix(text, "weir: ") {
			return []string{level + " " + text}
		}
	}
	return nil
}

var verb = regexp.MustCompile(`%[a-z]`)

// textOf returns the text of a constant, with an ellipsis for run-time parts.
func textOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return textOf(n.X) + textOf(n.Y)
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			return verb.ReplaceAllString(textOf(n.Args[0]), "…")
		}
		return "…"
	case *ast.SelectorExpr:
		return "…"
	}
	return ""
}
