// Command platforms type-checks the packages of the module, with their tests, for other platforms.
// Compiling the standard library and every dependency for each would take minutes.
//
//	go run ./internal/platforms darwin/arm64 js/wasm
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	for _, platform := range os.Args[1:] {
		system, arch, _ := strings.Cut(platform, "/")
		n, err := check(system, arch, "./...")
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", platform, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d packages\n", platform, n)
	}
}

// A listed is the go command's record of a package, or of one with its tests.
type listed struct {
	Dir, ImportPath, Name, ForTest string
	GoFiles                        []string
	ImportMap                      map[string]string
	DepOnly                        bool
	Module                         *struct{ GoVersion string }
	Error                          *struct{ Err string }
}

// check type-checks the packages that the patterns match and all that they import, and returns how
// many match. It looks into functions of those only.
func check(system, arch string, patterns ...string) (matched int, err error) {
	list := exec.Command("go", append([]string{"list", "-deps", "-test", "-e", "-json=Dir,ImportPath,Name,ForTest,GoFiles,ImportMap,DepOnly,Module,Error"}, patterns...)...)
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := list.Start(); err != nil {
		return 0, err
	}
	c := &checker{fset: token.NewFileSet(), sizes: types.SizesFor("gc", arch), done: map[string]*types.Package{"unsafe": types.Unsafe}}
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return matched, errors.Join(list.Wait(), c.problems())
		} else if err != nil {
			return matched, err
		}
		if !p.DepOnly {
			matched++
		}
		c.add(&p)
	}
}

// A checker holds the packages so far: the go command lists each after its imports.
type checker struct {
	fset  *token.FileSet
	sizes types.Sizes
	done  map[string]*types.Package
	errs  []error
}

func (c *checker) problems() error { return errors.Join(c.errs...) }

func (c *checker) add(p *listed) {
	switch {
	case p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test"): // the latter is made by the go command
		return
	case p.Error != nil && !p.DepOnly:
		c.errs = append(c.errs, errors.New(p.Error.Err))
		return
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			c.errs = append(c.errs, err)
			return
		}
		files = append(files, f)
	}
	config := types.Config{
		Importer:         importer{c.done, p.ImportMap},
		Sizes:            c.sizes,
		IgnoreFuncBodies: p.DepOnly,
		FakeImportC:      true,
		Error: func(err error) {
			if !p.DepOnly {
				c.errs = append(c.errs, err)
			}
		},
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.done[p.ImportPath], _ = config.Check(path, c.fset, files, nil) // Error has them all
}

// An importer finds a package's imports among those already checked.
type importer struct {
	done    map[string]*types.Package
	renamed map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if to, ok := i.renamed[path]; ok {
		path = to
	}
	if p, ok := i.done[path]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not listed", path)
}
