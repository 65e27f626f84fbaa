package headers

// codeVendors are the dialects of code and work on it.
var codeVendors = []Dialect{
	{
		Vendor: "Atlassian Data Center",
		Fields: []Field{
			{Name: "X-Ratelimit-Interval-Seconds", Tells: FactWindow},
		},
	},
	{Vendor: "Figma", Hosts: []string{"api.figma.com"}},
	{
		Vendor:       "GitHub", // a secondary limit may be told in the body alone
		Hosts:        []string{"api.github.com", "uploads.github.com", "*.ghe.com"},
		NotProcessed: []int{403},
		Reset:        ResetWindow,
		Body: []Field{
			{Name: "documentation_url", Tells: FactRefusal, Words: map[string]Scope{
				"*secondary-rate-limits": ScopeUnknown,
				"*#abuse-rate-limits":    ScopeUnknown,
			}},
		},
	},
	{
		Vendor: "GitLab",
		Hosts:  []string{"gitlab.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "Ratelimit-Name", Tells: FactName},
			{Name: "Ratelimit-Resettime", Tells: FactReset},
		},
	},
	{Vendor: "Jira Cloud", Hosts: []string{"*.atlassian.net", "api.atlassian.com"}, Advisory: true},
	{
		Vendor:       "Linear", // GraphQL: refuses under 400
		Hosts:        []string{"api.linear.app"},
		NotProcessed: []int{400},
		Fields: []Field{
			{Name: "X-Ratelimit-Complexity-Limit", Tells: FactLimit, Quota: "complexity", Unit: "complexity"},
			{Name: "X-Ratelimit-Complexity-Remaining", Tells: FactRemaining, Quota: "complexity", Unit: "complexity"},
			{Name: "X-Ratelimit-Complexity-Reset", Tells: FactReset, Quota: "complexity", Unit: "complexity"},
		},
		Body: []Field{
			{Name: "errors.*.extensions.code", Tells: FactRefusal, Words: map[string]Scope{"RATELIMITED": ScopeUnknown}},
		},
	},
	{Vendor: "Notion", Hosts: []string{"api.notion.com"}, Refuses: []int{529}},
	{Vendor: "PagerDuty", Hosts: []string{"api.pagerduty.com"}},
}
