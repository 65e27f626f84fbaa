package headers

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Lookup returns the dialect of a vendor, and whether there is one. Names
// ("GitHub", "Azure OpenAI") are found in any case, and so are some other names
// of a vendor ("Twitter", "Kong"). The dialect must not be changed.
func Lookup(vendor string) (*Dialect, bool) {
	d, ok := known().vendors[strings.ToLower(vendor)]
	return d, ok
}

// Register makes a dialect known to [Lookup] by its name and to [Parse] by its
// hosts. It takes the place of any dialect that had them before. The error says
// why a dialect cannot be registered. Register copies the dialect. It is safe
// for concurrent use with everything in this package.
//
// No registration is needed to read the responses of one client in a dialect:
// call the dialect's Parse.
func Register(d *Dialect) error {
	if err := d.validate(); err != nil {
		return err
	}
	registering.Lock()
	defer registering.Unlock()
	old := known()
	next := &registry{vendors: maps.Clone(old.vendors), domains: maps.Clone(old.domains)}
	next.add(d.clone())
	registered.Store(next)
	return nil
}

// A registry holds the dialects that are known. It is never changed once it is
// stored, so that reading it takes no lock.
type registry struct {
	vendors map[string]*Dialect   // by their names in lower case
	domains map[string][]hostRule // by the last two labels of the host
}

// A hostRule maps a host to its dialect.
type hostRule struct {
	host    string // "api.example.com", or ".example.com" for all hosts below that
	dialect *Dialect
}

var (
	registering sync.Mutex // held to replace registered
	registered  atomic.Pointer[registry]
)

// known returns the registry, with the dialects of the files in it.
func known() *registry {
	loadDialects()
	return registered.Load()
}

// add adds a dialect, in the place of any with its name or its hosts.
func (r *registry) add(d *Dialect) {
	name := strings.ToLower(d.Vendor)
	if old := r.vendors[name]; old != nil {
		for other, known := range r.vendors {
			if known == old {
				r.vendors[other] = d
			}
		}
	}
	r.vendors[name] = d
	for _, host := range d.Hosts {
		host = strings.TrimPrefix(strings.ToLower(host), "*")
		domain := domainOf(host)
		rules := slices.DeleteFunc(slices.Clone(r.domains[domain]), func(rule hostRule) bool { return rule.host == host })
		r.domains[domain] = append(rules, hostRule{host, d})
	}
}

// host returns the dialect of a URL's host. It is that of the host's own name,
// else that of the longest domain above it, else nil.
func (r *registry) host(u *url.URL) *Dialect {
	rules := r.domains[domainOf(u.Host)]
	if len(rules) == 0 {
		return nil
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	var best hostRule
	for _, rule := range rules {
		if strings.EqualFold(rule.host, host) {
			return rule.dialect
		}
		if rule.host[0] == '.' && hasSuffixFold(host, rule.host) && len(rule.host) > len(best.host) {
			best = rule
		}
	}
	return best.dialect
}

// domainOf returns the last two labels of a host, without its port, in small
// letters. A single look-up of them shows for nearly every host that no dialect
// is known.
func domainOf(host string) string {
	dots, upper := 0, false
labels:
	for i := len(host) - 1; i >= 0; i-- {
		switch c := host[i]; {
		case c == '.' && i == len(host)-1, c == ':':
			host, dots, upper = host[:i], 0, false // the dot of the root, or a port
		case c == '.':
			if dots++; dots == 2 {
				host = host[i+1:]
				break labels
			}
		case 'A' <= c && c <= 'Z':
			upper = true
		}
	}
	if upper {
		host = strings.ToLower(host)
	}
	return host
}

// hasSuffixFold reports whether s ends with a suffix, in any case.
func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

// validate returns what is wrong with a dialect.
func (d *Dialect) validate() error {
	if d == nil || d.Vendor == "" {
		return errors.New("headers: dialect without a vendor's name")
	}
	for _, host := range d.Hosts {
		name := strings.TrimPrefix(host, "*.")
		if name == "" || strings.Trim(name, ".") != name || strings.ContainsAny(name, "*/: ") || name != host && !strings.Contains(name, ".") {
			return fmt.Errorf("headers: dialect %s: host %q is neither a name nor one after \"*.\"", d.Vendor, host)
		}
	}
	if d.Scope > ScopeGlobal || d.Reset > ResetWindow {
		return fmt.Errorf("headers: dialect %s: unknown scope or kind of reset", d.Vendor)
	}
	for _, f := range slices.Concat(d.Fields, d.Body) {
		if f.Fact > lastFact || f.Syntax > lastSyntax || f.Member < 0 || f.Per < 0 || f.Window < 0 {
			return fmt.Errorf("headers: dialect %s: field %q: unknown fact or syntax, or number below zero", d.Vendor, f.Name)
		}
	}
	for _, f := range d.Fields {
		if f.Name == "" {
			return fmt.Errorf("headers: dialect %s: field without a name", d.Vendor)
		}
	}
	for _, f := range d.Body {
		if f.Syntax != SyntaxValue {
			return fmt.Errorf("headers: dialect %s: body %q: a syntax is for header fields", d.Vendor, f.Name)
		}
	}
	return nil
}

// clone returns a copy that shares nothing with d, with names as net/http
// writes them.
func (d *Dialect) clone() *Dialect {
	c := *d
	c.Hosts = slices.Clone(d.Hosts)
	c.Refuses = slices.Clone(d.Refuses)
	c.RefusesWithWait = slices.Clone(d.RefusesWithWait)
	c.RefusesByQuota = slices.Clone(d.RefusesByQuota)
	c.NotProcessed = slices.Clone(d.NotProcessed)
	c.Fields = cloneFields(d.Fields)
	c.Body = cloneFields(d.Body)
	for i := range c.Fields {
		c.Fields[i].Name = textproto.CanonicalMIMEHeaderKey(c.Fields[i].Name)
	}
	return &c
}

// cloneFields returns a copy that shares nothing with the fields.
func cloneFields(fields []Field) []Field {
	fields = slices.Clone(fields)
	for i := range fields {
		f := &fields[i]
		f.Words, f.If, f.Statuses = maps.Clone(f.Words), maps.Clone(f.If), slices.Clone(f.Statuses)
	}
	return fields
}
