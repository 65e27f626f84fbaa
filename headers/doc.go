// Package headers reads what the response of somebody else's API says about the
// caller's quotas: whether it refuses for now, for how long, and what is left.
//
//	signal := headers.Parse(resp, time.Now())
//	if wait, told := signal.Wait(); signal.Throttled && told {
//		// send nothing before time.Now().Add(wait)
//	}
//
// # What is read
//
// Retry-After (RFC 9110 section 10.2.3) in seconds, with a fraction, as any of the
// three HTTP-dates or RFC 3339, after its variants in milliseconds; all generations of
// the RateLimit header fields draft (draft-polli-ratelimit-headers-00 to
// draft-ietf-httpapi-ratelimit-headers-10), from 07 on as structured fields (RFC 9651);
// and every field with the word "ratelimit" or "rate-limit" in its name, whose other
// words name the quota. A 429 (RFC 6585 section 4) always refuses, a 503 with a
// Retry-After, a 403 with one or with a quota that has none remaining for more than
// two seconds.
//
// The body of a 400, 403 or 503 refuses if its error has the name of a rate limit, such
// as rate_limit_exceeded, TooManyRequests or ThrottlingException; that of a refusal may
// tell the wait, as "retry_after".
//
// # Dialects
//
// Vendors differ. [Parse] knows many by their host, and [Lookup] by their name. A
// [Dialect] is data: a row in a table says which fields are in milliseconds, which
// status refuses as well, where in a body of JSON or XML the wait stands. Write your own and
// call its Parse, or [Register] it.
//
// # What is not believed
//
// A vendor may be broken or hostile. A field of more than 16 KiB is not read. A wait
// is cut to 31 days; a count that is too high is left out. Of contradictory values the
// most cautious counts. Instants are taken against the vendor's own clock where its
// Date header can be trusted. A response from a cache tells of no quotas. No text of
// the vendor's gets into a signal but the names and units of quotas, of at most 64
// printable ASCII characters.
//
// # When not to use it
//
// It decides nothing: how long to wait in truth, and whether to send again at all, is
// for package backoff. It does not tell how many permits to spend from a quota on a
// success; the numbers there are often coarse. Behind a gateway of your own, which
// knows the quota better, configure the limit instead.
package headers
