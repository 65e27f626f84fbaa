package headers

// socialVendors are the dialects of talk, music and film.
var socialVendors = []Dialect{
	{
		Vendor: "Discord",
		Hosts:  []string{"discord.com", "*.discord.com", "discordapp.com", "*.discordapp.com"},
		Scope:  ScopeRoute,
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Ratelimit-Reset-After", Tells: FactReset},
			{Name: "X-Ratelimit-Reset", Tells: FactReset},
			{Name: "X-Ratelimit-Bucket", Tells: FactName},
			{Name: "X-Ratelimit-Scope", Tells: FactScope, Words: map[string]Scope{"global": ScopeGlobal}},
			{Name: "X-Ratelimit-Global", Tells: FactScope, Words: map[string]Scope{"true": ScopeGlobal}},
		},
	},
	{Vendor: "Reddit", Hosts: []string{"oauth.reddit.com", "www.reddit.com"}, Reset: ResetWindow},
	{
		Vendor: "Slack", // each method has limits of its own
		Hosts:  []string{"slack.com", "*.slack.com"},
		Scope:  ScopeRoute,
	},
	{Vendor: "Spotify", Hosts: []string{"api.spotify.com"}},
	{Vendor: "Vimeo", Hosts: []string{"api.vimeo.com"}},
	{
		Vendor: "X (Twitter)", // a day's quota beside those of the quarters of an hour
		Hosts:  []string{"api.x.com", "api.twitter.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-App-Limit-24hour-Limit", Tells: FactLimit, Quota: "app-24hour", Window: day},
			{Name: "X-App-Limit-24hour-Remaining", Tells: FactRemaining, Quota: "app-24hour", Window: day},
			{Name: "X-App-Limit-24hour-Reset", Tells: FactReset, Quota: "app-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Limit", Tells: FactLimit, Quota: "user-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Remaining", Tells: FactRemaining, Quota: "user-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Reset", Tells: FactReset, Quota: "user-24hour", Window: day},
		},
	},
}
