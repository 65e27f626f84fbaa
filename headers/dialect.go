package headers

// A Dialect is one vendor's way to speak of its quotas. It is data: what it does
// not say is read by the rules that hold for everybody. The zero value is the
// generic dialect. A Dialect must not be changed while it is in use; it is then
// safe for concurrent use.
type Dialect struct {
	// Vendor is the name that Lookup finds.
	Vendor string

	// Source is the address of the vendor's own words about its limits, from which
	// the dialect was made. Several have spaces between them. It is for people.
	Source string

	// Hosts are the hosts whose responses Parse reads in this dialect: names,
	// such as "api.example.com", or "*.example.com" for all hosts below one. If
	// empty, the dialect is only had by name.
	Hosts []string

	// Refuses are the statuses that refuse for now whatever else the response says,
	// besides 429.
	Refuses []int

	// RefusesWithWait are the statuses that refuse for now if the response asks for
	// a wait, besides 403 and 503.
	RefusesWithWait []int

	// RefusesByQuota are the statuses that refuse for now if a quota has none
	// remaining. 403 does so too if that quota's reset is more than two seconds
	// away: many vendors tell quotas that hold for one second on every response, a
	// 403 for want of a permission among them.
	RefusesByQuota []int

	// NotProcessed are the statuses of a refusal after which the vendor has
	// certainly done nothing, besides 429.
	NotProcessed []int

	// Scope is whom a refusal concerns, where the response does not say.
	Scope Scope

	// Reset is what the reset of a quota means, where the response does not say.
	Reset ResetKind

	// Advisory says that a quota with none remaining does not refuse.
	Advisory bool

	// MillisecondsOnce says that an old version of the interface tells Retry-After in
	// milliseconds: it does if a thousandth of it is within a second of a reset.
	MillisecondsOnce bool

	// Fields are the header fields that the vendor writes in its own way. They
	// are not read by the general rules; where several tell the same fact, the
	// first that is valid wins.
	Fields []Field

	// Body are the hints that stand in the body of an error status.
	Body []Field

	// BodyOfSuccess says that Body is read from a success as well, if its type is JSON
	// and it is at most 64 KiB long. If its length is not known, as of what net/http
	// unzipped or what came in chunks, its type has to be stated. A stream of events
	// is left alone.
	BodyOfSuccess bool
}
