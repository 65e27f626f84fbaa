package weir_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unsaid  = regexp.MustCompile(`[^\w -]`) // in the anchor of a heading
)

// pages returns the texts of the pages, by the paths of their files.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/operations/*.md", "docs/sdk/*.md", "examples/*.md", "distributed/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s = %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
	}
	return texts
}

// Each relative link of a page leads to a file, and to a heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	texts, links := pages(t), 0
	for page, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			to := filepath.Join(filepath.Dir(page), m[1])
			if m[1] == "" {
				to = page
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
			if m[2] != "" && !slices.Contains(anchors(texts[to]), m[2]) {
				t.Errorf("%s links to %s, which has no heading %q", page, to, m[2])
			}
		}
	}
	if links < 20 {
		t.Errorf("%d links were found, want the README's and those of docs", links)
	}
}

// Each exported name on a page, such as throttle.Within, is in testdata/api.
func TestNamesOfPagesExist(t *testing.T) {
	names, found := regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w+)`), 0
	apis := map[string]string{}
	for page, text := range pages(t) {
		for _, m := range names.FindAllStringSubmatch(text, -1) {
			api, known := apis[m[1]]
			if !known {
				for _, file := range []string{m[1], "distributed." + m[1], "shaping." + m[1], "throttle." + m[1]} {
					b, _ := os.ReadFile(filepath.Join("testdata", "api", file+".txt"))
					api += string(b)
				}
				apis[m[1]] = api
			}
			if api == "" { // another module's
				continue
			}
			if found++; !regexp.MustCompile(`\b` + m[2] + `\b`).MatchString(api) {
				t.Errorf("%s has %s, which is not there", page, m[0])
			}
		}
	}
	if found < 100 {
		t.Errorf("%d names were found, want those of all pages", found)
	}
}

// A page that says of how many vendors the dialects are read says the right number.
func TestPagesCountTheDialects(t *testing.T) {
	files, err := filepath.Glob("headers/dialects/*.json")
	if err != nil {
		t.Fatal(err)
	}
	dialects := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		dialects += len(rows)
	}
	said := 0
	for page, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\b(\d{3}) vendors`).FindAllStringSubmatch(text, -1) {
			if said++; m[1] != fmt.Sprint(dialects) {
				t.Errorf("%s says %s, and there are dialects of %d vendors", page, m[0], dialects)
			}
		}
	}
	if said < 2 {
		t.Errorf("%d pages say how many vendors there are, want the README and others", said)
	}
}

// The list of the documents, which is also the menu of the site, has every page.
func TestDocumentsAreListed(t *testing.T) {
	texts := pages(t)
	for page := range texts {
		dir, file := filepath.Split(page)
		if dir == "docs/" && file != "README.md" && !strings.Contains(texts["docs/README.md"], "]("+file+")") {
			t.Errorf("docs/README.md does not list %s", file)
		}
	}
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// needed are the packages that the pages' code may import.
const needed = `package pages

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/vendors"
	"github.com/weirgo/weir/weirtest"
)

var (
	_ context.Context
	_ tls.Config
	_ json.Number
	_ = errors.ErrUnsupported
	_ fmt.Stringer
	_ http.Client
	_ time.Duration
	_ redis.UniversalClient
	_ weir.Transport
	_ distributed.Store
	_ hostlocal.Store
	_ throttle.Limit
	_ shaping.Queue
	_ testing.TB
	_ vendors.Preset
	_ weirtest.Vendor
)
`

// named are the names that the pages' code uses and does not declare.
const named = `
const stripes = 4

var (
	ctx                  context.Context
	text                 []byte
	transport            = new(weir.Transport)
	client               *http.Client
	plan                 map[string]string
	customer, password   string
	cluster              redis.UniversalClient
	rate, burst, replica int
	callMyAPI            func(*http.Client, string)
)
`

var (
	block    = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	imports  = regexp.MustCompile(`(?s)^import \(.*?\n\)\n`)
	declared = regexp.MustCompile(`(?m)^(\w+) := `)
	function = regexp.MustCompile(`^func \w+`)
)

// Each block of Go in a page compiles.
func TestCodeOfPagesCompiles(t *testing.T) {
	dir, blocks, overlay := t.TempDir(), 0, map[string]string{}
	put := func(name, code string) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join("internal", "pages", name)] = file
	}
	put("named.go", needed+named)
	for page, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			blocks++
			code := imports.ReplaceAllString(m[1], "")
			code = function.ReplaceAllString(code, "_ = func")
			for _, name := range declared.FindAllStringSubmatch(code, -1) {
				code += "_ = " + name[1] + "\n"
			}
			put(fmt.Sprintf("p%d.go", blocks), fmt.Sprintf("%s\nfunc _() {\n//line %s:1\n%s}\n", needed, page, code))
		}
	}
	if blocks < 5 {
		t.Errorf("%d blocks were found, want the README's and those of docs", blocks)
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "./internal/pages").CombinedOutput()
	if err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}
