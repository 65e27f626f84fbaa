package headers

import (
	"bytes"
	"encoding/json"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// strictly is json.Unmarshal, but an unknown key is an error.
func strictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// rows returns the rows of all files.
func rows(t *testing.T) []row {
	t.Helper()
	var all []row
	if err := eachRow(strictly, func(r *row) error { all = append(all, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDialectsRows(t *testing.T) {
	day := regexp.MustCompile(`^20\d\d-\d\d-\d\d$`)
	for _, r := range rows(t) {
		d, err := r.dialect()
		if err == nil {
			err = d.validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		for source := range strings.SplitSeq(d.Source, " ") {
			if !strings.HasPrefix(source, "https://") {
				t.Errorf("%s: source %q, want the address of its documentation", r.Vendor, source)
			}
		}
		if r.Read != "unverified" && !day.MatchString(r.Read) {
			t.Errorf("%s: read %q, want the day on which its source was read, or \"unverified\"", r.Vendor, r.Read)
		}
		for _, f := range d.Fields {
			if f.Name != textproto.CanonicalMIMEHeaderKey(f.Name) {
				t.Errorf("%s: %s costs a conversion each time, want %s", r.Vendor, f.Name, textproto.CanonicalMIMEHeaderKey(f.Name))
			}
		}
		for _, f := range slices.Concat(d.Fields, d.Body) {
			if hasWords := FactRefusal <= f.Fact && f.Fact <= FactScope; hasWords != (len(f.Words) > 0) {
				t.Errorf("%s: %s has %d words", r.Vendor, f.Name, len(f.Words))
			}
			for word, scope := range f.Words {
				if scope > ScopeGlobal {
					t.Errorf("%s: word %q has an unknown scope", r.Vendor, word)
				}
			}
		}
	}
}

// Each name and each host leads to one row.
func TestDialectsNamesAndHosts(t *testing.T) {
	owners := map[string]string{}
	for _, r := range rows(t) {
		words := append([]string{strings.ToLower(r.Vendor)}, r.Also...)
		for _, host := range r.Hosts {
			words = append(words, "//"+host)
		}
		for _, name := range words {
			if owners[name] != "" || name != strings.ToLower(name) {
				t.Errorf("%s: %q is of %q too, or has capitals", r.Vendor, name, owners[name])
			}
			owners[name] = r.Vendor
		}
		for _, name := range append(r.Also, r.Vendor) {
			if d, ok := Lookup(strings.ToUpper(name)); !ok || d.Vendor != r.Vendor {
				t.Errorf("Lookup(%q) = %v, %v, want %s", strings.ToUpper(name), d, ok, r.Vendor)
			}
		}
		for _, host := range r.Hosts {
			some := strings.Replace(host, "*", "some", 1)
			if got := known().host(&url.URL{Host: some}); got == nil || got.Vendor != r.Vendor {
				t.Errorf("host %s is read as %v, want %s", some, got, r.Vendor)
			}
		}
	}
}

// Each value that a Field can have has one name in the files.
func TestDialectsNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		last  uint8
	}{{factNames, uint8(lastFact)}, {syntaxNames, uint8(lastSyntax)}, {scopeNames, uint8(ScopeGlobal)}, {resetNames, uint8(ResetWindow)}} {
		if len(c.names) != int(c.last)+1 {
			t.Errorf("names %q, want %d", c.names, c.last+1)
		}
	}
}

func TestDialectsMistakes(t *testing.T) {
	for _, text := range []string{
		`{"vendor": "V", "scope": "all"}`,
		`{"vendor": "V", "reset": "never"}`,
		`{"vendor": "V", "fields": [{"name": "X", "fact": "lies"}]}`,
		`{"vendor": "V", "fields": [{"name": "X", "syntax": "prose"}]}`,
		`{"vendor": "V", "fields": [{"name": "X", "window": "soon"}]}`,
		`{"vendor": "V", "body": [{"name": "x", "per": "1"}]}`,
	} {
		var r row
		err := strictly([]byte(text), &r)
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.dialect()
		if err == nil {
			err = d.validate()
		}
		if err == nil {
			t.Errorf("the row %s is taken", text)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "ab", true},
		{"a*", "ab", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false},
		{"*a*", "xay", true}, {"*a*", "xy", false}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"*ab*ab", "ab", false}, {"*ab*ab", "xababx", false}, {"*ab*ab", "abxab", true}, {"*a*b*", "ba", false},
	} {
		if got := matches(c.pattern, c.text); got != c.want {
			t.Errorf("matches(%q, %q) = %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}
