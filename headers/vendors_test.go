package headers

import (
	"net/textproto"
	"net/url"
	"strings"
	"testing"
)

func TestVendorsTable(t *testing.T) {
	names, hosts := map[string]bool{}, map[string]string{}
	for i := range vendors {
		d := &vendors[i]
		if err := d.validate(); err != nil {
			t.Error(err)
		}
		if name := strings.ToLower(d.Vendor); names[name] {
			t.Errorf("%s stands twice", d.Vendor)
		} else {
			names[name] = true
		}
		if !strings.HasPrefix(d.Source, "https://") {
			t.Errorf("%s: source %q, want the address of its documentation", d.Vendor, d.Source)
		}
		for _, host := range d.Hosts {
			if hosts[host] != "" || host != strings.ToLower(host) {
				t.Errorf("%s: host %s is of %s too, or not in lower case", d.Vendor, host, hosts[host])
			}
			hosts[host] = d.Vendor
		}
		for _, f := range d.Fields {
			if f.Name != textproto.CanonicalMIMEHeaderKey(f.Name) {
				t.Errorf("%s: %s costs a conversion each time, want %s", d.Vendor, f.Name, textproto.CanonicalMIMEHeaderKey(f.Name))
			}
		}
	}
}

// Each other name has to lead to a vendor, and to be the name of none.
func TestVendorsAliases(t *testing.T) {
	for alias, vendor := range aliases {
		d, ok := Lookup(strings.ToUpper(alias))
		if !ok || d.Vendor != vendor || alias != strings.ToLower(alias) {
			t.Errorf("Lookup(%q) = %v, %v, want %s", strings.ToUpper(alias), d, ok, vendor)
		}
		if _, taken := registered.Load().vendors[alias]; taken {
			t.Errorf("%q is the name of a vendor", alias)
		}
	}
}

// Each host of the table has to lead to its own dialect.
func TestVendorsHosts(t *testing.T) {
	for i := range vendors {
		for _, host := range vendors[i].Hosts {
			host = strings.Replace(host, "*", "some", 1)
			if got := registered.Load().host(&url.URL{Host: host}); got == nil || got.Vendor != vendors[i].Vendor {
				t.Errorf("host %s is read as %v, want %s", host, got, vendors[i].Vendor)
			}
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
