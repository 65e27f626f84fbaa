package headers

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Field is one header field, or one place in a body, and the fact that it
// states.
type Field struct {
	// Name is the name of the header field. With "*" at its end it stands for all
	// fields whose names begin so. The rest of a field's name is then the name of its
	// quota.
	//
	// In Dialect.Body, Name is the path of the value in JSON or XML: keys or
	// elements with dots between them. A "*" stands for any key, element or index
	// of an array ("error.details.*.retryDelay", "Error.Code"). An empty path is
	// the text of the body itself.
	Name string

	// Fact is what the value states. With the zero value, only a Syntax that implies the fact is read.
	Fact Fact

	// Syntax is how the value is written. Zero is one value, or several of which
	// the most cautious counts.
	Syntax Syntax

	// After is the text before the value, in a sentence. After "try again in " the value of "Please
	// try again in 20 seconds." is 20 s. If empty, the value is the whole text.
	After string

	// Member picks one of several values with commas between them, counted from 1,
	// for a vendor that lists several quotas in one field. Zero means all of them.
	Member int

	// Quota, Unit and Window describe the quota that the fact belongs to. If zero,
	// it has no name, counts requests, and its window is not known.
	Quota  string
	Unit   string
	Window time.Duration

	// Per is the unit of a number that is a time. Zero means seconds, or an instant
	// if the number is too large to be a wait.
	Per time.Duration

	// NegativeUnknown says that a number below zero does not state what remains. If
	// false, such a number means that none remains, because the quota was
	// overdrawn.
	NegativeUnknown bool

	// Words are the values that count, for FactRefusal, FactNoRefusal,
	// FactPermanent and FactScope, each with whom the refusal then concerns. A "*"
	// in a word stands for any text.
	Words map[string]Scope

	// NotProcessed says that the vendor has certainly done nothing if the value is one of Words.
	// FactRefusal and FactScope use it.
	NotProcessed bool

	// Statuses are the statuses under which the field is read. If empty, it is read
	// under all.
	Statuses []int

	// If holds conditions for reading the field, all of which must hold. A key is the name of
	// another header field of the response, or ":path" for the path of the request. Its value is
	// the required text, with "*" for any text. So a unit may depend on the version of an
	// interface. If a condition does not hold, the rows after this one and the rules for all
	// vendors may read the field.
	If map[string]string
}

// A Fact is what a field states.
type Fact uint8

// The facts.
const (
	factNone       Fact = iota
	FactLimit           // the most that is granted in a window
	FactRemaining       // how much of the limit remains
	FactUsed            // how much of the limit is used
	FactReset           // when there is more: a wait or an instant
	FactWindow          // the length of the window
	FactName            // the name of the quota that has none remaining
	FactRetryAfter      // the wait that the response asks for, or its end
	FactRefusal         // that the request was refused for now, by Words
	FactNoRefusal       // that the request was not refused, whatever the status, by Words
	FactPermanent       // that waiting will not help, by Words
	FactScope           // whom the refusal concerns, by Words
	FactCost            // how much of the quota the request needs
	FactRate            // how much of the quota comes back in a second

	lastFact = FactRate
)

// A Syntax says how a value is written.
type Syntax uint8

// The syntaxes. All but the first may report several quotas. They imply the
// fact, except for those whose comment names Fact.
const (
	SyntaxValue       Syntax = iota
	SyntaxUsedOfLimit        // "32/40", "api-usage=18/5000; other=17/250"
	SyntaxNamed              // "name;107" on each line; Fact says which
	SyntaxPairs              // "total=100; remaining=99; resets=41"
	SyntaxWindows            // "20:1,100:120", number:seconds; Fact says which
	SyntaxExhausted          // "60:name;name:scope, 2700::scope", seconds:quotas
	SyntaxPercent            // JSON of the percentages used, as Meta writes it
	SyntaxStructured         // RateLimit by another name; its policy, if Fact is FactLimit

	lastSyntax = SyntaxStructured
)

// names reports whether the field is the header field of that name. If the
// field ends with "*", rest is what the "*" stands for.
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
