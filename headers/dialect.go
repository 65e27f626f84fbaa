package headers

import "time"

// A Dialect is one vendor's way to speak of its quotas. It is data: what it does
// not say is read by the rules that hold for everybody. The zero value is the
// generic dialect. A Dialect must not be changed while it is in use; it is then
// safe for concurrent use.
type Dialect struct {
	// Vendor is the name that Lookup finds.
	Vendor string

	// Hosts are the hosts whose responses Parse reads in this dialect: names,
	// such as "api.example.com", or "*.example.com" for all hosts below one. If
	// empty, the dialect is only had by name.
	Hosts []string

	// Refuses are the statuses that refuse for now, besides 429, 503 with a
	// Retry-After, and 403 with one or with a quota that has none remaining.
	Refuses []int

	// NotProcessed are the statuses of a refusal after which the vendor has
	// certainly done nothing, besides 429.
	NotProcessed []int

	// Scope is whom a refusal concerns, where the response does not say.
	Scope Scope

	// Reset is what the reset of a quota means, where the response does not say.
	Reset ResetKind

	// Advisory says that a quota with none remaining does not refuse.
	Advisory bool

	// Fields are the header fields that the vendor writes in its own way. They
	// are not read by the general rules; where several tell the same fact, the
	// first that is valid wins.
	Fields []Field

	// Body are the hints that stand in a JSON body of an error status.
	Body []Field

	// BodyOfSuccess says that Body is read from a success as well, where its type
	// is JSON (or not stated) and its length known and at most 64 KiB.
	BodyOfSuccess bool
}

// A Field is one header field, or one place in a JSON body, and what it tells.
type Field struct {
	// Name is the name of the header field. In Dialect.Body it is the path of the
	// value: keys with dots between them, "*" for any key or any element of an
	// array ("error.details.*.retryDelay").
	Name string

	// Tells is the fact that the value tells. Zero tells nothing: the field is
	// not read.
	Tells Fact

	// Syntax is how the value is written. Zero is one value, or several of which
	// the most cautious counts.
	Syntax Syntax

	// Member is the place, from 1, of the value among those that commas separate,
	// for a vendor that lists several quotas in one field. Zero is all of them.
	Member int

	// Quota, Unit and Window are of the quota that the fact is of. Zero is a
	// quota without a name, of requests, whose window is not known.
	Quota  string
	Unit   string
	Window time.Duration

	// Per is the unit of a number that is a time. Zero is seconds, where the
	// number is not so large that it must be an instant.
	Per time.Duration

	// Words are the values of FactRefusal, FactPermanent and FactScope that count,
	// and whom the refusal then concerns. A "*" in a word stands for any text.
	Words map[string]Scope
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
	FactRefusal         // whether the request was refused for now, by Words
	FactPermanent       // whether waiting will not help, by Words
	FactScope           // whom the refusal concerns, by Words
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
)
