package headers

import "time"

// socialVendors are the dialects of vendors for talk, music and film.
var socialVendors = []Dialect{
	{
		Vendor:            "Discord", // up to version 7 waits in milliseconds
		Source:            "https://discord.com/developers/docs/topics/rate-limits https://discord.com/developers/docs/change-log#api-v8",
		Hosts:             []string{"discord.com", "*.discord.com", "discordapp.com", "*.discordapp.com"},
		Scope:             ScopeRoute,
		Reset:             ResetWindow,
		MaybeMilliseconds: true,
		Fields: []Field{
			{Name: "Retry-After", Tells: FactRetryAfter, Per: time.Millisecond, If: discordBefore8("6")},
			{Name: "Retry-After", Tells: FactRetryAfter, Per: time.Millisecond, If: discordBefore8("7")},
			{Name: "X-Ratelimit-Reset-After", Tells: FactReset},
			{Name: "X-Ratelimit-Reset", Tells: FactReset},
			{Name: "X-Ratelimit-Bucket", Tells: FactName},
			{Name: "X-Ratelimit-Scope", Tells: FactScope, Words: map[string]Scope{"global": ScopeGlobal}},
			{Name: "X-Ratelimit-Global", Tells: FactScope, Words: map[string]Scope{"true": ScopeGlobal}},
		},
		Body: []Field{
			{Name: "retry_after", Tells: FactRetryAfter, Per: time.Millisecond, If: discordBefore8("6")},
			{Name: "retry_after", Tells: FactRetryAfter, Per: time.Millisecond, If: discordBefore8("7")},
			{Name: "retry_after", Tells: FactRetryAfter, Statuses: []int{429}},
			{Name: "global", Tells: FactScope, Words: map[string]Scope{"true": ScopeGlobal}},
		},
	},
	{
		Vendor: "Reddit", // what is submitted is refused under 200
		Source: "https://support.reddithelp.com/hc/en-us/articles/16160319875092-Reddit-Data-API-Wiki https://github.com/reddit-archive/reddit/pull/380",
		Hosts:  []string{"oauth.reddit.com", "www.reddit.com"},
		Reset:  ResetWindow,
		Body: []Field{
			{Name: "json.errors.*.*", Tells: FactRefusal, Words: map[string]Scope{"RATELIMIT": ScopeRoute}},
			{Name: "json.ratelimit", Tells: FactRetryAfter},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Slack", // each method has limits of its own; most errors come under 200
		Source: "https://docs.slack.dev/apis/web-api/rate-limits https://docs.slack.dev/reference/methods/chat.postMessage#errors",
		Hosts:  []string{"slack.com", "*.slack.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "error", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{
				"ratelimited":  ScopeUnknown,
				"rate_limited": ScopeUnknown,
			}},
			{Name: "", Tells: FactRefusal, NotProcessed: true, Statuses: []int{400, 403, 503}, Words: map[string]Scope{
				"rate_limited": ScopeUnknown, // an incoming webhook
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Spotify", // waits of hours
		Source: "https://developer.spotify.com/documentation/web-api/concepts/rate-limits",
		Hosts:  []string{"api.spotify.com"},
	},
	{
		Vendor: "Vimeo", // an epoch once, now RFC 3339
		Source: "https://developer.vimeo.com/guidelines/rate-limiting",
		Hosts:  []string{"api.vimeo.com"},
		Reset:  ResetWindow,
		Body: []Field{
			{Name: "error_code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"9000": ScopeUnknown}},
		},
	},
	{
		Vendor:  "X (Twitter)", // a day's quota beside those of the quarters of an hour; 420 and 400 are of old versions
		Source:  "https://docs.x.com/x-api/fundamentals/rate-limits https://developer.x.com/en/support/x-api/error-troubleshooting",
		Hosts:   []string{"api.x.com", "api.twitter.com"},
		Refuses: []int{420},
		Reset:   ResetWindow,
		Fields: []Field{
			{Name: "X-App-Limit-24hour-Limit", Tells: FactLimit, Quota: "app-24hour", Window: day},
			{Name: "X-App-Limit-24hour-Remaining", Tells: FactRemaining, Quota: "app-24hour", Window: day},
			{Name: "X-App-Limit-24hour-Reset", Tells: FactReset, Quota: "app-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Limit", Tells: FactLimit, Quota: "user-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Remaining", Tells: FactRemaining, Quota: "user-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Reset", Tells: FactReset, Quota: "user-24hour", Window: day},
		},
		Body: []Field{
			{Name: "errors.*.code", Tells: FactRefusal, Words: map[string]Scope{
				"88":  ScopeUnknown,    // rate limit exceeded
				"130": ScopeUnknown,    // over capacity
				"161": ScopeCredential, // follows no more people now
				"185": ScopeCredential, // over the daily limit of posts
			}},
		},
	},
}

// discordBefore8 is the condition of an old version of Discord's interface.
func discordBefore8(version string) map[string]string {
	return map[string]string{":path": "/api/v" + version + "/*"}
}
