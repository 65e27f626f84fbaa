package headers

import "net/http"

// bucketFields are the header fields that name the bucket of a response: Discord
// names it by a hash, GitHub as a resource.
//
// https://discord.com/developers/docs/topics/rate-limits
// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
var bucketFields = [...]string{"X-Ratelimit-Bucket", "X-Ratelimit-Resource"}

// bucketOf returns the name of the bucket; "" if there is none. A name longer than
// those of quotas is not believed.
func bucketOf(h http.Header) string {
	for _, field := range bucketFields {
		if v := h[field]; len(v) > 0 && v[0] != "" && len(v[0]) <= maxName {
			return v[0]
		}
	}
	return ""
}
