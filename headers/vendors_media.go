package headers

import "time"

// mediaVendors are the dialects of media, games and knowledge.
var mediaVendors = []Dialect{
	{
		Vendor: "Crossref",
		Hosts:  []string{"api.crossref.org"},
		Fields: []Field{
			{Name: "X-Rate-Limit-Interval", Tells: FactWindow},
		},
	},
	{
		Vendor: "Imgur",
		Hosts:  []string{"api.imgur.com"},
		Fields: []Field{
			{Name: "X-Ratelimit-Userlimit", Tells: FactLimit, Quota: "user"},
			{Name: "X-Ratelimit-Userremaining", Tells: FactRemaining, Quota: "user"},
			{Name: "X-Ratelimit-Userreset", Tells: FactReset, Quota: "user"},
			{Name: "X-Ratelimit-Clientlimit", Tells: FactLimit, Quota: "client"},
			{Name: "X-Ratelimit-Clientremaining", Tells: FactRemaining, Quota: "client"},
		},
	},
	{
		Vendor:   "Meta Graph", // percentages; the wait is in minutes
		Hosts:    []string{"graph.facebook.com", "graph.instagram.com"},
		Advisory: true,
		Fields: []Field{
			{Name: "X-App-Usage", Syntax: SyntaxPercent, Quota: "app", Unit: "percent"},
			{Name: "X-Business-Use-Case-Usage", Syntax: SyntaxPercent, Unit: "percent"},
		},
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: map[string]Scope{
				"4": ScopeLane, "17": ScopeCredential, "32": ScopeUnknown, "613": ScopeUnknown,
				"80000": ScopeUnknown, "80001": ScopeUnknown, "80002": ScopeUnknown, "80003": ScopeUnknown,
				"80004": ScopeUnknown, "80005": ScopeUnknown, "80006": ScopeUnknown, "80008": ScopeUnknown,
				"80009": ScopeUnknown, "80014": ScopeUnknown,
			}},
		},
	},
	{
		Vendor: "Riot Games",
		Hosts:  []string{"*.api.riotgames.com"},
		Fields: []Field{
			{Name: "X-App-Rate-Limit", Syntax: SyntaxWindows, Tells: FactLimit, Quota: "app"},
			{Name: "X-App-Rate-Limit-Count", Syntax: SyntaxWindows, Tells: FactUsed, Quota: "app"},
			{Name: "X-Method-Rate-Limit", Syntax: SyntaxWindows, Tells: FactLimit, Quota: "method"},
			{Name: "X-Method-Rate-Limit-Count", Syntax: SyntaxWindows, Tells: FactUsed, Quota: "method"},
			{Name: "X-Rate-Limit-Type", Tells: FactScope, Words: map[string]Scope{
				"application": ScopeCredential,
				"method":      ScopeRoute,
				"service":     ScopeRoute,
			}},
		},
	},
	{
		Vendor: "Stack Exchange", // asks under 200 to be left alone
		Hosts:  []string{"api.stackexchange.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "backoff", Tells: FactRetryAfter},
			{Name: "quota_max", Tells: FactLimit, Quota: "quota"},
			{Name: "quota_remaining", Tells: FactRemaining, Quota: "quota"},
			{Name: "error_id", Tells: FactRefusal, Words: map[string]Scope{"502": ScopeUnknown}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Strava", // pairs: of a quarter of an hour, of a day
		Hosts:  []string{"www.strava.com"},
		Fields: []Field{
			{Name: "X-Ratelimit-Limit", Member: 1, Tells: FactLimit, Quota: "15min", Window: 15 * time.Minute},
			{Name: "X-Ratelimit-Limit", Member: 2, Tells: FactLimit, Quota: "daily", Window: day},
			{Name: "X-Ratelimit-Usage", Member: 1, Tells: FactUsed, Quota: "15min", Window: 15 * time.Minute},
			{Name: "X-Ratelimit-Usage", Member: 2, Tells: FactUsed, Quota: "daily", Window: day},
			{Name: "X-Readratelimit-Limit", Member: 1, Tells: FactLimit, Quota: "read-15min", Window: 15 * time.Minute},
			{Name: "X-Readratelimit-Limit", Member: 2, Tells: FactLimit, Quota: "read-daily", Window: day},
			{Name: "X-Readratelimit-Usage", Member: 1, Tells: FactUsed, Quota: "read-15min", Window: 15 * time.Minute},
			{Name: "X-Readratelimit-Usage", Member: 2, Tells: FactUsed, Quota: "read-daily", Window: day},
		},
	},
	{
		Vendor: "Telegram",
		Hosts:  []string{"api.telegram.org"},
		Body: []Field{
			{Name: "parameters.retry_after", Tells: FactRetryAfter},
		},
	},
	{
		Vendor: "Trello",
		Hosts:  []string{"api.trello.com"},
		Fields: []Field{
			{Name: "X-Rate-Limit-Api-Token-Max", Tells: FactLimit, Quota: "api-token"},
			{Name: "X-Rate-Limit-Api-Token-Remaining", Tells: FactRemaining, Quota: "api-token"},
			{Name: "X-Rate-Limit-Api-Token-Interval-Ms", Tells: FactWindow, Quota: "api-token", Per: time.Millisecond},
			{Name: "X-Rate-Limit-Api-Key-Max", Tells: FactLimit, Quota: "api-key"},
			{Name: "X-Rate-Limit-Api-Key-Remaining", Tells: FactRemaining, Quota: "api-key"},
			{Name: "X-Rate-Limit-Api-Key-Interval-Ms", Tells: FactWindow, Quota: "api-key", Per: time.Millisecond},
		},
	},
	{
		Vendor: "Wikimedia", // a database that lags refuses under 200
		Hosts:  []string{"*.wikipedia.org", "www.wikidata.org", "commons.wikimedia.org"},
		Fields: []Field{
			{Name: "Mediawiki-Api-Error", Tells: FactRefusal, Words: map[string]Scope{"maxlag": ScopeLane}},
		},
	},
	{Vendor: "Zoom", Hosts: []string{"api.zoom.us"}},
}
