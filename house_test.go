package weir_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/weirgo/weir"

// A listed is what the go command says of a package.
type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string

	GoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
	Deps                                               []string
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Deps", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// Imports go one way, so that each package can be read, tested and used
// without those above it.
func TestImportsGoOneWay(t *testing.T) {
	may := map[string][]string{
		module:                                   {"throttle", "shaping", "headers", "backoff", "internal/lane", "internal/learn", "internal/readable", "internal/replay", "internal/store", "internal/strict", "internal/telemetry"},
		module + "/internal/lane":                {"throttle", "shaping", "backoff", "internal/course", "internal/flight", "internal/gate", "internal/learn", "internal/readable", "internal/store"},
		module + "/internal/gate":                {"throttle", "shaping", "internal/course", "internal/flight", "internal/learn", "internal/store"},
		module + "/internal/course":              {"throttle", "internal/flight", "internal/learn", "internal/store"},
		module + "/internal/flight":              {"throttle", "internal/store"},
		module + "/internal/learn":               {"throttle"},
		module + "/internal/learn/sim":           {"throttle", "internal/learn", "internal/course", "internal/gate"},
		module + "/throttle":                     {},
		module + "/throttle/limitertest":         {"throttle", "shaping"},
		module + "/headers":                      {},
		module + "/backoff":                      {"headers"},
		module + "/shaping":                      {"throttle", "internal/readable", "internal/store"},
		module + "/distributed":                  {"throttle", "internal/store", "distributed/internal/call", "distributed/internal/reserve", "distributed/internal/script", "distributed/internal/slots"},
		module + "/distributed/hostlocal":        {"throttle", "internal/store"},
		module + "/distributed/internal/reserve": {"throttle", "internal/store", "distributed/internal/call", "distributed/internal/conn", "distributed/internal/script"},
		module + "/distributed/internal/slots":   {"throttle", "internal/store", "distributed/internal/call", "distributed/internal/conn", "distributed/internal/script"},
		module + "/distributed/internal/call":    {"throttle", "internal/store", "distributed/internal/conn", "distributed/internal/script"},
		module + "/distributed/internal/conn":    {},
		module + "/distributed/internal/script":  {"throttle", "internal/store"},
		module + "/internal/readable":            {},
		module + "/internal/replay":              {},
		module + "/internal/strict":              {},
		module + "/internal/telemetry":           {"throttle", "shaping", "headers", "backoff", "internal/store"},
		module + "/internal/store":               {"throttle"},
		module + "/internal/testserver":          {},
		module + "/weirtest":                     {"internal/testserver"},
		module + "/vendors":                      {"throttle", "headers", "backoff"}, // and the root
	}
	for _, p := range list(t) {
		allowed, ok := may[p.ImportPath]
		if !ok {
			if !strings.HasPrefix(p.ImportPath, module+"/internal/") {
				t.Errorf("package %s has no place in the house", p.ImportPath)
			}
			if slices.Contains(p.Imports, module) && p.ImportPath != module+"/internal/acceptance/harness" {
				t.Errorf("%s imports the root", p.ImportPath)
			}
			continue
		}
		for _, imported := range p.Imports {
			ours, is := strings.CutPrefix(imported, module+"/")
			root := imported == module && p.ImportPath != module+"/vendors"
			if root || is && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
		// What HTTP and telemetry have to do with a lane is its owner's.
		if p.ImportPath == module+"/internal/lane" && slices.ContainsFunc(p.Imports, func(i string) bool { return i == "net/http" || strings.Contains(i, "opentelemetry") }) {
			t.Errorf("%s imports net/http or telemetry", p.ImportPath)
		}
		if p.ImportPath == module && slices.ContainsFunc(p.Deps, func(d string) bool { return strings.Contains(d, "redis") }) {
			t.Error("the root builds a Redis client")
		}
	}
}

// A newcomer finds each package in CONTRIBUTING.
func TestHouseNamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if p.ImportPath == module {
			name = "weir"
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("CONTRIBUTING.md does not name the package %s", name)
		}
	}
}

// Small is a feature: a package has no more lines of Go, tests left out, than CONTRIBUTING allows it.
func TestPackagesKeepTheirBudgets(t *testing.T) {
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	budgets := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*; ([0-9,]+) lines (?:of Go )?at most").FindAllStringSubmatch(string(page), -1)
	if len(budgets) < 10 {
		t.Fatalf("CONTRIBUTING.md has %d budgets, want one for each large package", len(budgets))
	}
	all := list(t)
	for _, b := range budgets {
		most, err := strconv.Atoi(strings.ReplaceAll(b[2], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(p listed) bool { return p.ImportPath == module+"/"+b[1] })
		if i < 0 {
			t.Fatalf("CONTRIBUTING.md has a budget for %s, which is no package", b[1])
		}
		lines := 0
		for _, file := range slices.Concat(all[i].GoFiles, all[i].IgnoredGoFiles) {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path.Join(b[1], file))
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(text), "\n")
		}
		if lines > most {
			t.Errorf("%s has %d lines, and CONTRIBUTING.md allows %d", b[1], lines, most)
		}
	}
}

// What the project exists for we write; each other thing comes from one
// library that is listed here.
func TestDirectDependenciesAreListed(t *testing.T) {
	run := map[string][]string{
		"":                              {"go.opentelemetry.io/otel"},
		"/internal/telemetry":           {"go.opentelemetry.io/otel"},
		"/backoff":                      {"github.com/cenkalti/backoff/v4", "github.com/hashicorp/go-retryablehttp"},
		"/headers":                      {"github.com/dunglas/httpsfv"},
		"/distributed":                  {"github.com/redis/go-redis/v9"},
		"/distributed/internal/call":    {"github.com/redis/go-redis/v9"},
		"/distributed/internal/conn":    {"github.com/redis/go-redis/v9", "github.com/sony/gobreaker/v2"},
		"/distributed/internal/reserve": {"github.com/redis/go-redis/v9"}, // its tests
		"/distributed/internal/script":  {"github.com/redis/go-redis/v9"}, // its tests
		"/internal/redispipe":           {"github.com/redis/go-redis/v9"},
		"/internal/acceptance":          {"go.opentelemetry.io/otel", "github.com/redis/go-redis/v9"},
		"/weirtest":                     {"github.com/hashicorp/go-retryablehttp"}, // its tests
	}
	tests := []string{"pgregory.net/rapid", "go.uber.org/goleak", "github.com/alicebob/miniredis/v2", "go.opentelemetry.io/otel/sdk"}
	foreign := func(path string) bool {
		first, _, _ := strings.Cut(path, "/")
		return strings.Contains(first, ".") && path != module && !strings.HasPrefix(path, module+"/")
	}
	under := func(path string, roots []string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "/internal/acceptance/") {
			name = "/internal/acceptance"
		}
		testing := strings.HasPrefix(name, "/internal/") || name == "/throttle/limitertest"
		for _, imported := range p.Imports {
			may := under(imported, run[name]) && !under(imported, tests) || testing && under(imported, tests)
			if foreign(imported) && !may {
				t.Errorf("%s imports %s, which is not listed", p.ImportPath, imported)
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if foreign(imported) && !under(imported, slices.Concat(tests, run[name])) {
				t.Errorf("the tests of %s import %s, which is not listed", p.ImportPath, imported)
			}
		}
	}
}

// Each module that a program with Weir compiles stands in docs/stability.md.
func TestInheritedModulesAreListed(t *testing.T) {
	page, err := os.ReadFile("docs/stability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## What your module inherits")
	text, rest, _ := strings.Cut(text, "\n`go.mod` also names")
	if rest == "" {
		t.Fatal("docs/stability.md has no list of modules")
	}
	root, fleet, _ := strings.Cut(text, "\n`distributed` adds ")
	for dir, listed := range map[string]string{".": root, "./distributed": root + fleet} {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", dir).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range slices.Compact(slices.Sorted(strings.FieldsSeq(string(out)))) {
			_, short, _ := strings.Cut(path, "/")
			if path != module && !strings.Contains(listed, "`"+path+"`") && !strings.Contains(listed, "`"+short+"`") {
				t.Errorf("a program that imports %s compiles %s, which docs/stability.md does not name", dir, path)
			}
		}
	}
}

// A test file is named for its source: x_test.go tests x.go, and x_what_test.go
// one matter of it. A package's other test files bear well-known names.
func TestTestFilesAreNamedForTheirSources(t *testing.T) {
	known := map[string]string{
		"bench": "speed", "example": "documentation", "export": "what tests see of the inside", "fuzz": "fuzzing", "house": "these rules",
		"main": "TestMain", "progress": "what waits, in real time", "rig": "what tests share",
	}
	// In distributed a fleet is replicas over a real Redis, in real time, but for that of
	// fleet_bubble_test.go.
	fleets, acceptance := module+"/distributed", module+"/internal/acceptance/"
	all := list(t)
	root := all[slices.IndexFunc(all, func(p listed) bool { return p.ImportPath == module })]
	for _, p := range all {
		sources := slices.Concat(p.GoFiles, p.IgnoredGoFiles)
		if strings.HasPrefix(p.ImportPath, acceptance) { // a folder of tests of the root
			sources = root.GoFiles
		}
		if p.ImportPath == fleets { // its tests go through its rooms
			for _, room := range all {
				if strings.HasPrefix(room.ImportPath, fleets+"/internal/") {
					sources = append(sources, room.GoFiles...)
				}
			}
		}
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			name := strings.TrimSuffix(file, "_test.go")
			first, _, _ := strings.Cut(name, "_")
			of := func(source string) bool {
				source = strings.TrimSuffix(source, ".go")
				return name == source || strings.HasPrefix(name, source+"_")
			}
			if known[first] == "" && (p.ImportPath != fleets || first != "fleet") && !slices.ContainsFunc(sources, of) && name != path.Base(p.ImportPath) {
				t.Errorf("%s: %s is named for no source", p.ImportPath, file)
			}
		}
	}
}
