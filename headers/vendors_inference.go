package headers

// inferenceVendors are more of those that let models run.
var inferenceVendors = []Dialect{
	{Vendor: "Cerebras", Source: "https://inference-docs.cerebras.ai/support/rate-limits", Hosts: []string{"api.cerebras.ai"}, Scope: ScopeCredential},
	{
		Vendor: "Cohere",
		Source: "https://docs.cohere.com/docs/rate-limits",
		Hosts:  []string{"api.cohere.com", "api.cohere.ai"},
		Scope:  ScopeCredential,
		Fields: []Field{
			{Name: "X-Trial-Endpoint-Call-Limit", Tells: FactLimit, Quota: "trial"},
			{Name: "X-Trial-Endpoint-Call-Remaining", Tells: FactRemaining, Quota: "trial"},
			{Name: "X-Endpoint-Monthly-Call-Limit", Tells: FactLimit, Quota: "monthly"},
		},
	},
	{
		Vendor: "ElevenLabs",
		Source: "https://help.elevenlabs.io/hc/en-us/articles/19571824571921-API-Error-Code-429",
		Hosts:  []string{"api.elevenlabs.io", "*.elevenlabs.io"},
		Body: []Field{
			{Name: "detail.status", Tells: FactScope, Words: map[string]Scope{
				"too_many_concurrent_requests": ScopeCredential,
				"system_busy":                  ScopeLane, // no quota was met
			}},
		},
	},
	{
		Vendor: "OpenRouter", // what a provider refuses comes under 200 as well, its fields in the body
		Source: "https://openrouter.ai/docs/api-reference/errors https://openrouter.ai/docs/api-reference/limits",
		Hosts:  []string{"openrouter.ai"},
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: map[string]Scope{"429": ScopeUnknown}},
			{Name: "error.metadata.headers.X-RateLimit-Limit", Tells: FactLimit},
			{Name: "error.metadata.headers.X-RateLimit-Remaining", Tells: FactRemaining},
			{Name: "error.metadata.headers.X-RateLimit-Reset", Tells: FactReset}, // milliseconds of the epoch
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Together AI",
		Source: "https://docs.together.ai/docs/rate-limits",
		Hosts:  []string{"api.together.xyz", "api.together.ai"},
		Scope:  ScopeCredential,
		Fields: []Field{
			{Name: "X-Tokenlimit-Limit", Tells: FactLimit, Quota: "tokens", Unit: unitTokens},
			{Name: "X-Tokenlimit-Remaining", Tells: FactRemaining, Quota: "tokens", Unit: unitTokens},
		},
	},
	{Vendor: "xAI", Source: "https://docs.x.ai/docs/key-information/consumption-and-rate-limits", Hosts: []string{"api.x.ai"}, Scope: ScopeCredential},
}
