package headers

import (
	"encoding/base32"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

// structuredTests is the number of tests in the suite of the HTTP working group,
// whose files are in testdata.
const structuredTests = 1591

type structuredTest struct {
	Name       string
	Raw        []string
	HeaderType string `json:"header_type"`
	Expected   any
	MustFail   bool `json:"must_fail"`
	CanFail    bool `json:"can_fail"`
}

// The suite runs over the parts that this package uses: lists, dictionaries and their items,
// through its only call of the parser. An item must be a list of one.
func TestStructuredFieldSuite(t *testing.T) {
	files, err := filepath.Glob("testdata/structured-field-tests/*.json")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tests []structuredTest
		if err := json.Unmarshal(text, &tests); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, test := range tests {
				ran++
				test.run(t)
			}
		})
	}
	t.Logf("%d of %d structured field tests ran", ran, structuredTests)
	if ran != structuredTests {
		t.Errorf("%d structured field tests ran, want %d", ran, structuredTests)
	}
}

func (test *structuredTest) run(t *testing.T) {
	t.Helper()
	list, isList := parseStructured(test.Raw, httpsfv.UnmarshalList)
	dictionary, isDictionary := parseStructured(test.Raw, httpsfv.UnmarshalDictionary)
	var got any
	var ok bool
	switch test.HeaderType {
	case "list":
		got, ok = shapeList(list), isList
	case "dictionary":
		got, ok = shapeDictionary(dictionary), isDictionary
	case "item":
		if test.MustFail {
			return // it may still be a valid list
		}
		if got, ok = any(nil), isList && len(list) == 1; ok {
			got = shapeMember(list[0])
		}
	}
	switch {
	case test.MustFail && ok:
		t.Errorf("%s: %q parses as %v, want an error", test.Name, test.Raw, got)
	case test.MustFail, test.CanFail && !ok:
	case !ok:
		t.Errorf("%s: %q does not parse", test.Name, test.Raw)
	case !reflect.DeepEqual(got, test.Expected):
		t.Errorf("%s: %q parses as %v, want %v", test.Name, test.Raw, got, test.Expected)
	}
}

// The shapes are those of the suite: an item is [value, parameters], a list and a
// dictionary are arrays.

func shapeList(list httpsfv.List) any {
	shape := []any{}
	for _, member := range list {
		shape = append(shape, shapeMember(member))
	}
	return shape
}

func shapeDictionary(d *httpsfv.Dictionary) any {
	shape := []any{}
	if d == nil {
		return shape
	}
	for _, key := range d.Names() {
		member, _ := d.Get(key)
		shape = append(shape, []any{key, shapeMember(member)})
	}
	return shape
}

func shapeMember(member httpsfv.Member) any {
	switch member := member.(type) {
	case httpsfv.Item:
		return []any{shapeValue(member.Value), shapeParameters(member.Params)}
	case httpsfv.InnerList:
		items := []any{}
		for _, item := range member.Items {
			items = append(items, shapeMember(item))
		}
		return []any{items, shapeParameters(member.Params)}
	}
	return nil
}

func shapeParameters(parameters *httpsfv.Params) any {
	shape := []any{}
	for _, key := range parameters.Names() {
		value, _ := parameters.Get(key)
		shape = append(shape, []any{key, shapeValue(value)})
	}
	return shape
}

func shapeValue(value any) any {
	typed := func(name string, value any) any { return map[string]any{"__type": name, "value": value} }
	switch value := value.(type) {
	case int64:
		return float64(value)
	case httpsfv.Token:
		return typed("token", string(value))
	case httpsfv.DisplayString:
		return typed("displaystring", string(value))
	case time.Time:
		return typed("date", float64(value.Unix()))
	case []byte:
		return typed("binary", base32.StdEncoding.EncodeToString(value))
	}
	return value
}

func TestParserPanicEndsHere(t *testing.T) {
	_, ok := parseStructured([]string{"a"}, func([]string) (int, error) { panic("index out of range") })
	if ok {
		t.Error("a parser that panics returns a field, want ok false")
	}
}

// Each of these makes the parser do the most work for its bytes.
func TestStructuredFieldOutOfProportion(t *testing.T) {
	for _, unit := range []string{"a,", "a;", "a;a=1;", "(a a)", `"";r=1,`, ":", "a=1,", `"`, `\"`} {
		line := strings.Repeat(unit, maxField/len(unit))
		if cost := allocated(func() {
			r := reader{dialect: generic}
			r.draft([]string{line})
			r.draftPolicy([]string{line})
		}); cost > 128<<10 {
			t.Errorf("%d bytes of %q cost %d bytes, want at most 128 KiB", len(line), unit, cost)
		}
	}
	if parsable(slices.Repeat([]string{"a"}, maxSeparators+1)) {
		t.Error("lines without end are parsable, want not")
	}
}

// allocated returns the bytes that f allocates, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
