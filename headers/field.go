package headers

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Field is one header field, or one place in a body, and what it tells.
type Field struct {
	// Name is the name of the header field; with "*" at its end, all whose names begin
	// so, each of a quota that the rest names. In Dialect.Body it is the path of the
	// value in JSON or XML: keys or elements with dots between them, "*" for any of
	// them and for any element of an array ("error.details.*.retryDelay",
	// "Error.Code"). An empty path is the text of the body itself.
	Name string

	// Tells is the fact that the value tells. Zero tells nothing: the field is
	// not read.
	Tells Fact

	// Syntax is how the value is written. Zero is one value, or several of which
	// the most cautious counts.
	Syntax Syntax

	// After is the text that the value stands behind, in a sentence: with
	// "try again in " the value of "Please try again in 20 seconds." is 20 s. If it
	// is empty, the value is the whole text.
	After string

	// Member is the place, from 1, of the value among those that commas separate,
	// for a vendor that lists several quotas in one field. Zero is all of them.
	Member int

	// Quota, Unit and Window are of the quota that the fact is of. Zero is a
	// quota without a name, of requests, whose window is not known.
	Quota  string
	Unit   string
	Window time.Duration

	// Per is the unit of a number that is a time. Zero is seconds, if the number is
	// not so large that it must be an instant.
	Per time.Duration

	// NegativeUnknown says that of a number below zero what remains is not known. Else
	// it means none: a quota that was overdrawn.
	NegativeUnknown bool

	// Words are the values of FactRefusal, FactNoRefusal, FactPermanent and
	// FactScope that count, and whom the refusal then concerns. A "*" in a word
	// stands for any text.
	Words map[string]Scope

	// NotProcessed says that a refusal by Words is the vendor's promise that it has
	// done nothing. FactRefusal and FactScope use it.
	NotProcessed bool

	// Statuses are the statuses under which the field is read. Empty is all.
	Statuses []int

	// If are conditions, all of which have to hold for the field to be read: the
	// name of another header field of the response, or ":path" for the path of the
	// request, and the value that it must have, with "*" for any text. Thus a unit
	// may depend on the version of an interface. A field whose conditions do not
	// hold is left to the rows after it, and then to the general rules.
	If map[string]string
}

// A Fact is what a field tells.
type Fact uint8

// The facts.
const (
	factNone       Fact = iota
	FactLimit           // most that is granted in a window
	FactRemaining       // what remains of it
	FactUsed            // what is used of it
	FactReset           // when there is more: a wait or an instant
	FactWindow          // the length of the window
	FactName            // the name of the quota that has none
	FactRetryAfter      // the wait that the response asks for, or its end
	FactRefusal         // that the request was refused for now, by Words
	FactNoRefusal       // that it was not, whatever the status, by Words
	FactPermanent       // that waiting will not help, by Words
	FactScope           // whom the refusal concerns, by Words
	FactCost            // what the request needs of the quota
	FactRate            // what comes back to the quota in a second

	lastFact = FactRate
)

// A Syntax is the way a value is written.
type Syntax uint8

// The syntaxes. All but the first may tell of several quotas; Tells is then said
// by the syntax, but where it is named here.
const (
	SyntaxValue       Syntax = iota
	SyntaxUsedOfLimit        // "32/40", "api-usage=18/5000; other=17/250"
	SyntaxNamed              // "name;107" on each line; Tells says which fact
	SyntaxPairs              // "total=100; remaining=99; resets=41"
	SyntaxWindows            // "20:1,100:120", number:seconds; Tells says which fact
	SyntaxExhausted          // "60:name;name:scope, 2700::scope", seconds:quotas
	SyntaxPercent            // JSON of the percentages used, as Meta writes it
	SyntaxStructured         // RateLimit by another name; its policy, if Tells is FactLimit

	lastSyntax = SyntaxStructured
)

// names reports whether the field is the one of that name in a header, and what of it
// "*" stands for.
func (f *Field) names(name string) (rest string, ok bool) {
	prefix, wild := strings.CutSuffix(f.Name, "*")
	if !wild {
		return "", strings.EqualFold(prefix, name)
	}
	if len(name) <= len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return "", false
	}
	return name[len(prefix):], true
}

// applies reports whether the field is to be read in a response.
func (f *Field) applies(resp *http.Response) bool {
	if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, resp.StatusCode) {
		return false
	}
	for name, pattern := range f.If {
		var value string
		switch {
		case name != ":path":
			value = resp.Header.Get(name)
		case resp.Request != nil && resp.Request.URL != nil:
			value = resp.Request.URL.Path
		}
		if !matches(pattern, value) {
			return false
		}
	}
	return true
}
