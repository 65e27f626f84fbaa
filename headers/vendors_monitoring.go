package headers

// monitoringVendors are the dialects of monitoring and search.
var monitoringVendors = []Dialect{
	{
		Vendor: "Datadog",
		Hosts:  []string{"*.datadoghq.com", "*.datadoghq.eu", "*.ddog-gov.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Ratelimit-Period", Tells: FactWindow},
			{Name: "X-Ratelimit-Name", Tells: FactName},
		},
	},
	{Vendor: "Elasticsearch"},
	{
		Vendor: "Sentry",
		Hosts:  []string{"sentry.io", "*.sentry.io"},
		Fields: []Field{
			{Name: "X-Sentry-Rate-Limits", Syntax: SyntaxExhausted, Unit: "events"},
			{Name: "X-Sentry-Rate-Limit-Concurrentlimit", Tells: FactLimit, Quota: "concurrent", Unit: "concurrent-requests"},
			{Name: "X-Sentry-Rate-Limit-Concurrentremaining", Tells: FactRemaining, Quota: "concurrent", Unit: "concurrent-requests"},
		},
	},
}
