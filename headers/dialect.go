package headers

// A Dialect says how one vendor reports its quotas. It is data: everything else is read by the
// rules for all vendors. The zero value is the generic dialect. A Dialect is safe for concurrent
// use, and must not be changed while it is in use.
type Dialect struct {
	// Vendor is the name that Lookup finds.
	Vendor string

	// Source is the address of the vendor's own text about its limits, from which
	// the dialect was made. Several addresses have spaces between them. It is for
	// people.
	Source string

	// Read is the day on which Source was last read, as "2006-01-02", or
	// "unverified". It is for people.
	Read string

	// Hosts are the hosts whose responses Parse reads in this dialect. A host is a
	// name such as "api.example.com", or "*.example.com" for all hosts below one.
	// If empty, the dialect is found by its name only.
	Hosts []string

	// Refuses are the statuses that always refuse for now, whatever else the
	// response says. 429 is one without being listed.
	Refuses []int

	// RefusesWithWait are the statuses that refuse for now if the response asks for
	// a wait. 403 and 503 are among them without being listed.
	RefusesWithWait []int

	// RefusesByQuota are the statuses that refuse for now if a quota has none
	// remaining. A 403 that is not listed does so if that quota's reset is more
	// than two seconds away. Many vendors report a quota of one second on every
	// response, so a 403 for want of a permission may have it too.
	RefusesByQuota []int

	// NotProcessed are the statuses of a refusal after which the vendor has
	// certainly done nothing. 429 is one without being listed.
	NotProcessed []int

	// Scope says whom a refusal concerns if the response does not say it.
	Scope Scope

	// Reset says what the reset of a quota means if the response does not say it.
	Reset ResetKind

	// Advisory says that the vendor does not refuse when a quota has none
	// remaining.
	Advisory bool

	// MaybeMilliseconds says that old versions of the vendor's interface send
	// Retry-After in milliseconds. A value is taken for milliseconds if a
	// thousandth of it is within a second of a quota's reset.
	MaybeMilliseconds bool

	// Fields are the header fields that the vendor writes in its own way. The rules for all vendors
	// do not apply to them. The first valid one of several for the same fact counts.
	Fields []Field

	// Body are the places in the body of an error that state something.
	Body []Field

	// BodyOfSuccess says that Body is also read in the body of a success. That body
	// must be JSON of at most 64 KiB. If its length is not known, because net/http
	// has unzipped it or because it came in chunks, its type must be stated as
	// well. Streams of events are never read.
	BodyOfSuccess bool
}
