package weir_test

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The API that users compile against changes only on purpose. WEIR_API=write writes the current API.
func TestAPIIsAsWritten(t *testing.T) {
	written, err := filepath.Glob("testdata/api/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	apis := publicAPIs(t)
	for _, file := range written {
		if _, ok := apis[file]; !ok {
			t.Errorf("%s is of no public package", file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(apis)) {
		if os.Getenv("WEIR_API") == "write" {
			if err := os.WriteFile(file, []byte(apis[file]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		for _, change := range changes(string(want), apis[file]) {
			t.Errorf("%s: %s", file, change)
		}
	}
	if t.Failed() {
		t.Log("if this is meant, write it: WEIR_API=write go test -run TestAPIIsAsWritten .")
	}
}

// changes returns the declarations that only one of two texts has.
func changes(before, after string) (all []string) {
	old, now := strings.Split(before, "\n\n"), strings.Split(after, "\n\n")
	for _, d := range old {
		if !slices.Contains(now, d) {
			all = append(all, "was: "+d)
		}
	}
	for _, d := range now {
		if !slices.Contains(old, d) {
			all = append(all, "is: "+d)
		}
	}
	return all
}

// publicAPIs returns the exported declarations of each package that users may import, by the
// files that hold them.
func publicAPIs(t *testing.T) map[string]string {
	t.Helper()
	apis := map[string]string{}
	paths := []string{"shaping/grpcshaping", "shaping/xrate"} // modules of their own
	for _, p := range list(t) {
		paths = append(paths, strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"))
	}
	for _, path := range paths {
		p, err := build.ImportDir(filepath.Join(".", path), 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == "main" || slices.Contains(strings.Split(path, "/"), "internal") {
			continue
		}
		name := strings.ReplaceAll(path, "/", ".")
		if path == "" {
			name = p.Name
		}
		apis["testdata/api/"+name+".txt"] = apiOf(t, p)
	}
	return apis
}

// apiOf returns the exported declarations of a package without their comments and bodies, in
// the order of go/doc, with an empty line between two.
func apiOf(t *testing.T, p *build.Package) string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	d, err := doc.NewFromFiles(fset, files, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("package " + p.Name + "\n")
	put := func(node ast.Decl) {
		var text strings.Builder
		uncomment(node)
		if err := (&printer.Config{Mode: printer.UseSpaces, Tabwidth: 4}).Fprint(&text, fset, node); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n" + strings.ReplaceAll(text.String(), "\n\n", "\n") + "\n")
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			put(v.Decl)
		}
	}
	funcs := func(all []*doc.Func) {
		for _, f := range all {
			put(f.Decl)
		}
	}
	values(d.Consts)
	values(d.Vars)
	funcs(d.Funcs)
	for _, typ := range d.Types {
		put(typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	return b.String()
}

// uncomment removes the comments of a declaration.
func uncomment(decl ast.Decl) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.FuncDecl:
			n.Doc = nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
}
