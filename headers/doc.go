// Package headers reads what a vendor's response says about the caller's quotas: whether it
// refuses, for how long, and what is left.
//
//	signal := headers.Parse(resp, time.Now())
//	if wait, ok := signal.Wait(); signal.Throttled && ok {
//		// send nothing before time.Now().Add(wait)
//	}
//
// # What is read
//
// Retry-After (RFC 9110 section 10.2.3) is read in seconds, with or without a
// fraction, as any of the three HTTP-dates, and as RFC 3339. Its variants in
// milliseconds come first. A number in them that would be thirty years is an
// instant. A whole number in Retry-After that is a thousand times the reset of a quota
// (within a hundredth) is in milliseconds. The RateLimit header fields are read in all
// generations of their draft (draft-polli-ratelimit-headers-00 to
// draft-ietf-httpapi-ratelimit-headers-11), from 07 on as structured fields
// (RFC 9651). Every other field with the word "ratelimit" or "rate-limit" in its name
// may state a limit, what remains or a reset. The other words behind that one are the
// quota; those before it are ignored. A last word such as "ms" is the unit of a reset.
//
// A 429 (RFC 6585 section 4) always refuses. A 503 refuses if it has a
// Retry-After. A 403 refuses if it has one, or if a quota has none remaining
// for more than two seconds.
//
// The body of a 400, 403 or 503 refuses if its error has the name of a rate limit. Such
// names are rate_limit_exceeded, TooManyRequests, ThrottlingException and
// RESOURCE_EXHAUSTED. The body of a refusal may state a wait of up to an hour, as in
// "retry_after", "retryDelay" or "retry_in_ms".
//
// # Dialects
//
// Vendors differ. [Parse] knows nearly 300 by their host, and [Lookup] by their name:
// the folder dialects has a file of rows for each industry. A row has the address of
// the vendor's documentation, and the day on which it was last read. A [Dialect] is
// data: a row that says which fields are in milliseconds, which other statuses refuse,
// and where in a body the wait stands. Write your own and call its Parse, or [Register]
// it.
//
// # What is not believed
//
// A vendor may be broken or hostile. A field of more than 16 KiB is not read. A wait is
// cut to 31 days; a count that is too high is left out. If values contradict each
// other, the most cautious one counts. Parse reads 64 KiB of a body, 4 KiB of a text in
// it, and 32 levels of its nesting. An instant is taken against the vendor's own clock
// if its Date header can be trusted. A response from a cache reports no quotas. A
// signal holds no text of the vendor's but names of quotas and buckets, and units, of at
// most 64 printable ASCII characters. The key of a partition is bytes as they came.
//
// # When not to use it
//
// The package decides nothing: package backoff decides how long to wait and whether to retry. It
// does not say how many permits of a quota a successful call has spent; the numbers there are often
// coarse. If a gateway of your own knows the quota better, configure the limit instead.
package headers
