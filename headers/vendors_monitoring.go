package headers

// monitoringVendors are what watches and searches.
var monitoringVendors = []Dialect{
	{
		Vendor: "Datadog",
		Source: "https://docs.datadoghq.com/api/latest/rate-limits/",
		Hosts:  []string{"*.datadoghq.com", "*.datadoghq.eu", "*.ddog-gov.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Ratelimit-Period", Tells: FactWindow},
			{Name: "X-Ratelimit-Name", Tells: FactName},
		},
	},
	{
		Vendor: "Elasticsearch", // of a bulk some may be refused, under 200
		Source: "https://www.elastic.co/docs/troubleshoot/elasticsearch/rejected-requests https://www.elastic.co/docs/troubleshoot/elasticsearch/circuit-breaker-errors",
		Hosts:  []string{"*.es.io", "*.elastic-cloud.com", "*.found.io"},
		Body: []Field{
			{Name: "error.type", Tells: FactRefusal, Words: elasticRefusals}, // under 503 up to version 6
			{Name: "error.root_cause.*.type", Tells: FactRefusal, Words: elasticRefusals},
			{Name: "items.*.*.status", Tells: FactRefusal, Words: map[string]Scope{"429": ScopeUnknown}},
			{Name: "items.*.*.error.type", Tells: FactRefusal, Words: elasticRefusals},
			{Name: "responses.*.status", Tells: FactRefusal, Words: map[string]Scope{"429": ScopeUnknown}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Sentry", // ingestion tells quotas by category, the web interface two of all
		Source: "https://develop.sentry.dev/sdk/expected-features/rate-limiting/ https://docs.sentry.io/api/ratelimits/",
		Hosts:  []string{"sentry.io", "*.sentry.io"},
		Fields: []Field{
			{Name: "X-Sentry-Rate-Limits", Syntax: SyntaxExhausted, Unit: "events"},
			{Name: "X-Sentry-Rate-Limit-Concurrentlimit", Tells: FactLimit, Quota: "concurrent", Unit: "concurrent-requests"},
			{Name: "X-Sentry-Rate-Limit-Concurrentremaining", Tells: FactRemaining, Quota: "concurrent", Unit: "concurrent-requests"},
		},
	},
}

var elasticRefusals = map[string]Scope{
	"es_rejected_execution_exception": ScopeUnknown,
	"circuit_breaking_exception":      ScopeUnknown,
}
