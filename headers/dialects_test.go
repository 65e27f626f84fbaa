package headers

import (
	"bytes"
	"encoding/json"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// strictly is json.Unmarshal, but a key without a meaning is an error.
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
	names, hosts := map[string]bool{}, map[string]string{}
	for _, r := range rows(t) {
		d, err := r.dialect()
		if err == nil {
			err = d.validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{strings.ToLower(r.Vendor)}, r.Also...) {
			if names[name] || name != strings.ToLower(name) {
				t.Errorf("%s: the name %q stands twice, or has capitals", r.Vendor, name)
			}
			names[name] = true
			if found, ok := Lookup(strings.ToUpper(name)); !ok || found.Vendor != r.Vendor {
				t.Errorf("Lookup(%q) = %v, %v, want %s", strings.ToUpper(name), found, ok, r.Vendor)
			}
		}
		for source := range strings.SplitSeq(d.Source, " ") {
			if !strings.HasPrefix(source, "https://") {
				t.Errorf("%s: source %q, want the address of its documentation", r.Vendor, source)
			}
		}
		if r.Read != "unverified" && !day.MatchString(r.Read) {
			t.Errorf("%s: read %q, want the day on which its source was read, or \"unverified\"", r.Vendor, r.Read)
		}
		for _, host := range r.Hosts {
			if hosts[host] != "" || host != strings.ToLower(host) {
				t.Errorf("%s: host %s is of %s too, or not in lower case", r.Vendor, host, hosts[host])
			}
			hosts[host] = r.Vendor
			some := strings.Replace(host, "*", "some", 1)
			if got := known().host(&url.URL{Host: some}); got == nil || got.Vendor != r.Vendor {
				t.Errorf("host %s is read as %v, want %s", some, got, r.Vendor)
			}
		}
		for _, f := range d.Fields {
			if f.Name != textproto.CanonicalMIMEHeaderKey(f.Name) {
				t.Errorf("%s: %s costs a conversion each time, want %s", r.Vendor, f.Name, textproto.CanonicalMIMEHeaderKey(f.Name))
			}
		}
		for _, f := range append(d.Fields, d.Body...) {
			for word, scope := range f.Words {
				if scope > ScopeGlobal {
					t.Errorf("%s: word %q has an unknown scope", r.Vendor, word)
				}
			}
			if len(f.Words) == 0 && FactRefusal <= f.Tells && f.Tells <= FactScope {
				t.Errorf("%s: %s has no words", r.Vendor, f.Name)
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
		`{"vendor": "V", "fields": [{"name": "X", "tells": "lies"}]}`,
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
