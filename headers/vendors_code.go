package headers

// codeVendors are the dialects of vendors for code and the work on it.
var codeVendors = []Dialect{
	{
		Vendor: "Atlassian Data Center", // a wait of zero stands on every success
		Source: "https://confluence.atlassian.com/adminjiraserver/adjusting-your-code-for-rate-limiting-987143384.html",
		Reset:  ResetNext,
		Fields: []Field{
			{Name: "X-Ratelimit-Interval-Seconds", Tells: FactWindow},
		},
	},
	{
		Vendor: "Figma", // waits of days
		Source: "https://developers.figma.com/docs/rest-api/rate-limits/",
		Hosts:  []string{"api.figma.com"},
		Scope:  ScopeCredential,
	},
	{
		Vendor:         "GitHub", // a secondary limit may be told in the body alone; GraphQL refuses under 200
		Source:         "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api",
		Hosts:          []string{"api.github.com", "uploads.github.com", "*.ghe.com"},
		RefusesByQuota: []int{403},
		NotProcessed:   []int{403},
		Reset:          ResetWindow,
		Body: []Field{
			{Name: "documentation_url", Tells: FactRefusal, Statuses: []int{403, 429}, Words: map[string]Scope{
				"*secondary-rate-limits": ScopeUnknown,
				"*#abuse-rate-limits":    ScopeUnknown,
			}},
			{Name: "message", Tells: FactRefusal, Statuses: []int{403, 429}, Words: map[string]Scope{
				"*secondary rate limit*":      ScopeUnknown,
				"*API rate limit *exceeded*":  ScopeUnknown,
				"*abuse detection mechanism*": ScopeUnknown,
				"*submitted too quickly*":     ScopeUnknown,
			}},
			{Name: "message", Tells: FactNoRefusal, Statuses: []int{403}, Words: map[string]Scope{
				"Resource not accessible by *": ScopeUnknown,
				"Must have *":                  ScopeUnknown,
				"Resource protected by *":      ScopeUnknown,
			}},
			{Name: "errors.*.type", Tells: FactRefusal, Statuses: []int{200, 403}, If: githubGraphQL, Words: map[string]Scope{
				"RATE_LIMITED": ScopeUnknown,
				"RATE_LIMIT":   ScopeUnknown,
			}},
			{Name: "errors.*.code", Tells: FactRefusal, Statuses: []int{200, 403}, If: githubGraphQL, Words: map[string]Scope{
				"graphql_rate_limit": ScopeUnknown,
			}},
			{Name: "message", Tells: FactRefusal, Statuses: []int{200}, If: githubGraphQL, Words: map[string]Scope{
				"*secondary rate limit*": ScopeUnknown,
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "GitLab", // the reset in three ways
		Source: "https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/#response-headers",
		Hosts:  []string{"gitlab.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "Ratelimit-Name", Tells: FactName},
			{Name: "Ratelimit-Resettime", Tells: FactReset},
		},
	},
	{
		Vendor:   "Jira Cloud", // a reset may be past; the beta fields are of draft 08
		Source:   "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/",
		Hosts:    []string{"*.atlassian.net", "api.atlassian.com"},
		Advisory: true,
		Fields: []Field{
			{Name: "Beta-Ratelimit-Policy", Syntax: SyntaxStructured, Tells: FactLimit},
			{Name: "Beta-Ratelimit", Syntax: SyntaxStructured, Tells: FactRemaining},
			{Name: "Ratelimit-Reason", Tells: FactScope, Words: map[string]Scope{
				"jira-per-issue-on-write": ScopeRequest,
				"*-burst-based":           ScopeRoute,
				"*-quota-*":               ScopeLane,
			}},
		},
	},
	{
		Vendor:       "Linear", // GraphQL: refuses under 400; instants in milliseconds
		Source:       "https://linear.app/developers/rate-limiting",
		Hosts:        []string{"api.linear.app"},
		NotProcessed: []int{400},
		Fields: []Field{
			{Name: "X-Ratelimit-Complexity-Limit", Tells: FactLimit, Quota: "complexity", Unit: "complexity"},
			{Name: "X-Ratelimit-Complexity-Remaining", Tells: FactRemaining, Quota: "complexity", Unit: "complexity"},
			{Name: "X-Ratelimit-Complexity-Reset", Tells: FactReset, Quota: "complexity", Unit: "complexity"},
		},
		Body: []Field{
			{Name: "errors.*.extensions.code", Tells: FactRefusal, Words: map[string]Scope{"RATELIMITED": ScopeUnknown}},
			{Name: "errors.*.extensions.type", Tells: FactRefusal, Words: map[string]Scope{"ratelimited": ScopeUnknown}},
		},
	},
	{
		Vendor:  "Notion",
		Source:  "https://developers.notion.com/reference/request-limits https://developers.notion.com/reference/status-codes",
		Hosts:   []string{"api.notion.com"},
		Refuses: []int{529},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"rate_limited": ScopeUnknown}},
		},
	},
	{
		Vendor: "PagerDuty", // delays under the draft's names
		Source: "https://developer.pagerduty.com/docs/rest-api-rate-limits",
		Hosts:  []string{"api.pagerduty.com", "api.eu.pagerduty.com", "events.pagerduty.com", "events.eu.pagerduty.com"},
		Reset:  ResetWindow,
	},
}

// githubGraphQL is the condition of GitHub's GraphQL: its successes alone are looked
// into.
var githubGraphQL = map[string]string{"X-Ratelimit-Resource": "graphql"}
