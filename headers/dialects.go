package headers

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// dialectFiles holds the dialects that this package knows, a file for each industry and a row for
// each vendor. The row of a vendor that keeps to the general rules only gives the meaning of its
// words.
//
//go:embed dialects/*.json
var dialectFiles embed.FS

// A row is a [Dialect] as the files hold it, with other names of the vendor.
// Note is for people.
type row struct {
	Vendor            string
	Also              []string // in small letters
	Note              string
	Source            []string
	Read              string
	Hosts             []string
	Refuses           []int
	RefusesWithWait   []int `json:"refuses_with_wait"`
	RefusesByQuota    []int `json:"refuses_by_quota"`
	NotProcessed      []int `json:"not_processed"`
	Scope             string
	Reset             string
	Advisory          bool
	MaybeMilliseconds bool `json:"maybe_milliseconds"`
	Fields, Body      []place
	BodyOfSuccess     bool `json:"body_of_success"`
}

// A place is one [Field], or several that differ only in their names.
type place struct {
	Name            oneOrMore
	Fact            string
	Syntax          string
	After           string
	Member          int
	Quota           string
	Unit            string
	Window, Per     string
	NegativeUnknown bool `json:"negative_unknown"`
	Words           words
	NotProcessed    bool `json:"not_processed"`
	Statuses        []int
	If              map[string]string
	Note            string
}

// oneOrMore is a string, or a list of them.
type oneOrMore []string

func (l *oneOrMore) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(l))
	}
	*l = make(oneOrMore, 1)
	return json.Unmarshal(text, &(*l)[0])
}

// words are [Field.Words]: an object with the scope of each word, or a list of words without
// scopes.
type words map[string]Scope

func (w *words) UnmarshalJSON(text []byte) error {
	*w = words{}
	if text[0] == '[' {
		var list []string
		err := json.Unmarshal(text, &list)
		for _, word := range list {
			(*w)[word] = ScopeUnknown
		}
		return err
	}
	var scopes map[string]string
	err := json.Unmarshal(text, &scopes)
	for word, scope := range scopes {
		(*w)[word] = Scope(indexOf(scopeNames, scope))
	}
	return err
}

// The names of values in the files, in the order of the values.
var (
	factNames   = []string{"", "limit", "remaining", "used", "reset", "window", "name", "retry_after", "refusal", "no_refusal", "permanent", "scope", "cost", "rate"}
	syntaxNames = []string{"", "used_of_limit", "named", "pairs", "windows", "exhausted", "percent", "structured"}
	scopeNames  = []string{"", "request", "route", "credential", "lane", "global"}
	resetNames  = []string{"", "full", "next", "window"}
)

// indexOf returns the value of a name. For an unknown name it is a value that
// validate rejects.
func indexOf(names []string, name string) uint8 { return uint8(slices.Index(names, name)) }

// loadDialects registers the rows of the files, once. A program that asks for
// no vendor's dialect does not pay for them.
var loadDialects = sync.OnceFunc(func() {
	r := &registry{vendors: map[string]*Dialect{}, domains: map[string][]hostRule{}}
	err := eachRow(json.Unmarshal, func(row *row) error {
		d, err := row.dialect()
		if err != nil {
			return err
		}
		r.add(d)
		for _, name := range row.Also {
			r.vendors[name] = d
		}
		return d.validate()
	})
	if err != nil {
		panic(err.Error()) // a mistake in the files, which a test finds
	}
	registered.Store(r)
})

// eachRow calls yield for the rows of all files, until one is wrong.
func eachRow(unmarshal func([]byte, any) error, yield func(*row) error) error {
	files, _ := fs.Glob(dialectFiles, "dialects/*.json")
	for _, file := range files {
		var rows []row
		text, err := dialectFiles.ReadFile(file)
		if err == nil {
			err = unmarshal(text, &rows)
		}
		for i := range rows {
			if err == nil {
				err = yield(&rows[i])
			}
		}
		if err != nil {
			return fmt.Errorf("headers: %s: %w", file, err)
		}
	}
	return nil
}

// dialect returns the row as a dialect.
func (w *row) dialect() (*Dialect, error) {
	d := &Dialect{
		Vendor: w.Vendor, Source: strings.Join(w.Source, " "), Read: w.Read, Hosts: w.Hosts,
		Refuses: w.Refuses, RefusesWithWait: w.RefusesWithWait, RefusesByQuota: w.RefusesByQuota, NotProcessed: w.NotProcessed,
		Scope: Scope(indexOf(scopeNames, w.Scope)), Reset: ResetKind(indexOf(resetNames, w.Reset)),
		Advisory: w.Advisory, MaybeMilliseconds: w.MaybeMilliseconds, BodyOfSuccess: w.BodyOfSuccess,
	}
	var err error
	if d.Fields, err = fieldsOf(w.Fields); err == nil {
		d.Body, err = fieldsOf(w.Body)
	}
	return d, err
}

// fieldsOf returns the fields at the places.
func fieldsOf(places []place) ([]Field, error) {
	var fields []Field
	for i := range places {
		p := &places[i]
		window, err := durationOf(p.Window)
		if err != nil {
			return nil, err
		}
		per, err := durationOf(p.Per)
		if err != nil {
			return nil, err
		}
		for _, name := range p.Name {
			fields = append(fields, Field{
				Name: name, Fact: Fact(indexOf(factNames, p.Fact)), Syntax: Syntax(indexOf(syntaxNames, p.Syntax)),
				After: p.After, Member: p.Member, Quota: p.Quota, Unit: p.Unit, Window: window, Per: per,
				NegativeUnknown: p.NegativeUnknown, Words: p.Words, NotProcessed: p.NotProcessed, Statuses: p.Statuses, If: p.If,
			})
		}
	}
	return fields, nil
}

// durationOf returns a duration such as "24h"; zero if none is stated.
func durationOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return time.ParseDuration(text)
}
