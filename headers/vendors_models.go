package headers

// modelVendors are the dialects of language models.
var modelVendors = []Dialect{
	{Vendor: "Anthropic", Hosts: []string{"api.anthropic.com"}, Refuses: []int{529}, Advisory: true, Reset: ResetFull},
	{Vendor: "Azure OpenAI", Hosts: []string{"*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com"}, Advisory: true, Reset: ResetFull},
	{
		Vendor: "Google Gemini",
		Hosts:  []string{"generativelanguage.googleapis.com"},
		Body: []Field{
			{Name: "error.details.*.retryDelay", Tells: FactRetryAfter},
		},
	},
	{Vendor: "Groq", Hosts: []string{"api.groq.com"}, Advisory: true, Reset: ResetFull},
	{Vendor: "Hugging Face", Hosts: []string{"huggingface.co"}},
	{Vendor: "Mistral", Hosts: []string{"api.mistral.ai"}},
	{
		Vendor:   "OpenAI", // the reset is when the quota is whole, not the next call's time
		Hosts:    []string{"api.openai.com"},
		Advisory: true,
		Reset:    ResetFull,
		Body: []Field{
			{Name: "error.code", Tells: FactPermanent, Words: map[string]Scope{"insufficient_quota": ScopeUnknown}},
			{Name: "error.type", Tells: FactPermanent, Words: map[string]Scope{"insufficient_quota": ScopeUnknown}},
		},
	},
}
