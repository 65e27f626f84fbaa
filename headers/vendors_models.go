package headers

// modelVendors are the dialects of language models. Their quotas of tokens are rounded,
// and the reset is when they are whole, not the time of the next call.
var modelVendors = []Dialect{
	{
		Vendor:       "Anthropic", // 529: overloaded, for everybody
		Source:       "https://docs.anthropic.com/en/api/errors https://docs.anthropic.com/en/api/rate-limits https://docs.anthropic.com/en/api/service-tiers",
		Hosts:        []string{"api.anthropic.com"},
		Refuses:      []int{529},
		NotProcessed: []int{529},
		Advisory:     true,
		Reset:        ResetFull,
		Fields: []Field{ // what was bought beforehand
			{Name: "Anthropic-Priority-Input-Tokens-Limit", Tells: FactLimit, Quota: "priority-input-tokens", Unit: unitTokens},
			{Name: "Anthropic-Priority-Input-Tokens-Remaining", Tells: FactRemaining, Quota: "priority-input-tokens", Unit: unitTokens},
			{Name: "Anthropic-Priority-Input-Tokens-Reset", Tells: FactReset, Quota: "priority-input-tokens", Unit: unitTokens},
			{Name: "Anthropic-Priority-Output-Tokens-Limit", Tells: FactLimit, Quota: "priority-output-tokens", Unit: unitTokens},
			{Name: "Anthropic-Priority-Output-Tokens-Remaining", Tells: FactRemaining, Quota: "priority-output-tokens", Unit: unitTokens},
			{Name: "Anthropic-Priority-Output-Tokens-Reset", Tells: FactReset, Quota: "priority-output-tokens", Unit: unitTokens},
		},
		Body: []Field{
			{Name: "error.type", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{
				"rate_limit_error": ScopeUnknown,
				"overloaded_error": ScopeUnknown,
			}},
		},
	},
	{
		Vendor:          "Azure OpenAI", // a stream that is held back begins with 200 and a wait
		Source:          "https://learn.microsoft.com/en-us/azure/ai-services/openai/how-to/quota",
		Hosts:           []string{"*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com"},
		RefusesWithWait: []int{200},
		Advisory:        true,
		Reset:           ResetFull,
		Body: []Field{
			{Name: "error.message", After: "retry after ", Tells: FactRetryAfter},
			{Name: "error.message", After: "Try again in ", Tells: FactRetryAfter},
			{Name: "error.code", Tells: FactPermanent, Words: map[string]Scope{"insufficient_quota": ScopeUnknown}},
		},
	},
	{
		Vendor: "Google Gemini", // a day's quota used up comes with a short delay all the same
		Source: "https://ai.google.dev/gemini-api/docs/troubleshooting https://google.aip.dev/193",
		Hosts:  []string{"generativelanguage.googleapis.com"},
		Body: append([]Field{
			{Name: "error.message", After: "retry in ", Tells: FactRetryAfter},
			{Name: "error.message", Tells: FactRefusal, Statuses: []int{503}, Words: map[string]Scope{"*overloaded*": ScopeUnknown}},
		}, googleBody...),
	},
	{
		Vendor:   "Groq", // 498: its flexible tier has no capacity now
		Source:   "https://console.groq.com/docs/rate-limits https://console.groq.com/docs/errors",
		Hosts:    []string{"api.groq.com"},
		Refuses:  []int{498},
		Advisory: true,
		Reset:    ResetFull,
		Body: []Field{
			{Name: "error.message", After: "try again in ", Tells: FactRetryAfter},
		},
	},
	{
		Vendor: "Hugging Face", // 503: the model is being loaded, for so many seconds
		Source: "https://huggingface.co/docs/hub/rate-limits https://huggingface.co/docs/api-inference/",
		Hosts:  []string{"huggingface.co", "*.huggingface.co"},
		Body: []Field{
			{Name: "estimated_time", Tells: FactRetryAfter, Statuses: []int{503}},
		},
	},
	{
		Vendor: "Mistral",
		Source: "https://docs.mistral.ai/deployment/laplateforme/tier/",
		Hosts:  []string{"api.mistral.ai"},
		Body: []Field{
			{Name: "type", Tells: FactRefusal, Words: map[string]Scope{
				"rate_limited":                   ScopeUnknown,
				"service_tier_capacity_exceeded": ScopeUnknown,
			}},
		},
	},
	{
		Vendor:   "OpenAI",
		Source:   "https://platform.openai.com/docs/guides/error-codes https://platform.openai.com/docs/guides/rate-limits",
		Hosts:    []string{"api.openai.com"},
		Advisory: true,
		Reset:    ResetFull,
		Body: []Field{
			{Name: "error.code", Tells: FactPermanent, Words: openAIForbids},
			{Name: "error.type", Tells: FactPermanent, Words: openAIForbids},
			{Name: "error.message", After: "try again in ", Tells: FactRetryAfter, Statuses: []int{429}},
			{Name: "error.code", Tells: FactRefusal, Statuses: []int{503}, Words: map[string]Scope{"slow_down": ScopeUnknown}},
			{Name: "error.message", Tells: FactRefusal, Statuses: []int{503}, Words: map[string]Scope{
				"*Slow Down*":  ScopeUnknown,
				"*overloaded*": ScopeUnknown,
			}},
		},
	},
}

// openAIForbids are the refusals that end when somebody pays.
var openAIForbids = map[string]Scope{
	"insufficient_quota":         ScopeUnknown,
	"billing_not_active":         ScopeUnknown,
	"billing_hard_limit_reached": ScopeUnknown,
}

// googleBody are the ways of Google's interfaces: AIP-193 with google.rpc.RetryInfo,
// which streams wrap in an array, and the reasons of older ones.
var googleBody = []Field{
	{Name: "error.details.*.retryDelay", Tells: FactRetryAfter},
	{Name: "error.details.*.errors.*.details.quotaErrorDetails.retryDelay", Tells: FactRetryAfter}, // Google Ads
	{Name: "*.error.details.*.retryDelay", Tells: FactRetryAfter},
	{Name: "error.message", After: "Retry after ", Tells: FactRetryAfter, Statuses: []int{403, 429}}, // Gmail, an instant
	{Name: "error.status", Tells: FactRefusal, NotProcessed: true, Words: googleStatuses},
	{Name: "*.error.status", Tells: FactRefusal, NotProcessed: true, Words: googleStatuses},
	{Name: "error.details.*.reason", Tells: FactRefusal, NotProcessed: true, Words: googleReasons},
	{Name: "error.errors.*.reason", Tells: FactRefusal, NotProcessed: true, Words: googleReasons},
	{Name: "error.details.*.reason", Tells: FactPermanent, Statuses: []int{403}, Words: googleDaily},
	{Name: "error.errors.*.reason", Tells: FactPermanent, Statuses: []int{403}, Words: googleDaily},
}

// googleDaily are the refusals that end at midnight, Pacific time.
var googleDaily = map[string]Scope{
	"dailyLimitExceeded":               ScopeUnknown,
	"dailyLimitExceededUnreg":          ScopeUnknown,
	"variableTermExpiredDailyExceeded": ScopeUnknown,
}

var googleStatuses = map[string]Scope{"RESOURCE_EXHAUSTED": ScopeUnknown}

var googleReasons = map[string]Scope{
	"RATE_LIMIT_EXCEEDED":              ScopeUnknown,
	"RESOURCE_QUOTA_EXCEEDED":          ScopeUnknown,
	"userRateLimitExceeded":            ScopeCredential,
	"userRateLimitExceededUnreg":       ScopeCredential,
	"sharingRateLimitExceeded":         ScopeCredential,
	"rateLimitExceeded":                ScopeUnknown,
	"jobRateLimitExceeded":             ScopeUnknown,
	"quotaExceeded":                    ScopeUnknown,
	"dailyLimitExceeded":               ScopeUnknown,
	"dailyLimitExceededUnreg":          ScopeUnknown,
	"concurrentLimitExceeded":          ScopeUnknown,
	"servingLimitExceeded":             ScopeUnknown,
	"variableTermLimitExceeded":        ScopeUnknown,
	"variableTermExpiredDailyExceeded": ScopeUnknown,
}
