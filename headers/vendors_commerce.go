package headers

import "time"

// commerceVendors are what shops and their offices work with.
var commerceVendors = []Dialect{
	{
		Vendor: "BigCommerce", // the reset is a delay in milliseconds
		Source: "https://docs.bigcommerce.com/developer/docs/overview/api-fundamentals/rate-limits",
		Hosts:  []string{"api.bigcommerce.com"},
		Scope:  ScopeCredential,
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Rate-Limit-Requests-Quota", Tells: FactLimit},
			{Name: "X-Rate-Limit-Requests-Left", Tells: FactRemaining},
			{Name: "X-Rate-Limit-Time-Reset-Ms", Tells: FactReset, Per: time.Millisecond},
			{Name: "X-Rate-Limit-Time-Window-Ms", Tells: FactWindow, Per: time.Millisecond},
		},
	},
	{Vendor: "Brevo", Source: "https://developers.brevo.com/docs/limit-headers", Hosts: []string{"api.brevo.com", "api.sendinblue.com"}, Reset: ResetWindow},
	{Vendor: "ClickUp", Source: "https://developer.clickup.com/docs/rate-limits", Hosts: []string{"api.clickup.com"}, Scope: ScopeCredential, Reset: ResetWindow},
	{
		Vendor: "eBay", // the interfaces of before refuse under 500
		Source: "https://developer.ebay.com/support/kb-article?KBid=1538 https://developer.ebay.com/api-docs/static/handling-error-messages.html",
		Hosts:  []string{"api.ebay.com", "svcs.ebay.com", "open.api.ebay.com"},
		Scope:  ScopeLane,
		Body: []Field{
			{Name: "errorMessage.*.error.*.errorId.*", Tells: FactRefusal, Words: map[string]Scope{"10001": ScopeUnknown}},
			{Name: "errorMessage.error.errorId", Tells: FactRefusal, Words: map[string]Scope{"10001": ScopeUnknown}},
		},
	},
	{
		Vendor: "Freshdesk",
		Source: "https://developers.freshdesk.com/api/#ratelimit",
		Hosts:  []string{"*.freshdesk.com"},
		Scope:  ScopeLane,
		Fields: []Field{
			{Name: "X-Ratelimit-Total", Tells: FactLimit},
		},
	},
	{
		Vendor: "HighLevel",
		Source: "https://marketplace.gohighlevel.com/docs/other/rate-limits",
		Hosts:  []string{"services.leadconnectorhq.com", "rest.gohighlevel.com"},
		Fields: []Field{
			{Name: "X-Ratelimit-Max", Tells: FactLimit},
			{Name: "X-Ratelimit-Interval-Milliseconds", Tells: FactWindow, Per: time.Millisecond},
		},
	},
	{Vendor: "lemlist", Source: "https://developer.lemlist.com/api-reference/getting-started/rate-limits", Hosts: []string{"api.lemlist.com"}, Scope: ScopeCredential},
	{Vendor: "Mailchimp", Source: "https://mailchimp.com/developer/marketing/docs/fundamentals/#api-limits", Hosts: []string{"*.api.mailchimp.com"}, Scope: ScopeCredential},
	{Vendor: "MailerLite", Source: "https://developers-classic.mailerlite.com/docs/api-rate-limits", Hosts: []string{"connect.mailerlite.com", "api.mailerlite.com"}, Reset: ResetWindow},
	{
		Vendor:       "Marketo", // refuses under 200; of any code that begins with 6 it says that nothing was done
		Source:       "https://experienceleague.adobe.com/en/docs/marketo-developer/marketo/rest/error-codes",
		Hosts:        []string{"*.mktorest.com"},
		NotProcessed: []int{200},
		Body: []Field{
			{Name: "errors.*.code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{
				"606": ScopeLane, // 100 calls in 20 seconds
				"607": ScopeLane, // a day's quota
				"608": ScopeLane, // unavailable for now
				"615": ScopeLane, // too many at a time
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "monday.com", // GraphQL: refuses under 200 as well
		Source: "https://developer.monday.com/api-reference/docs/rate-limits https://developer.monday.com/api-reference/changelog/new-descriptive-field-limit-exceeded-error https://developer.monday.com/api-reference/changelog/updated-ip-limit-error-handling",
		Hosts:  []string{"api.monday.com"},
		Body: []Field{
			{Name: "errors.*.extensions.code", Tells: FactRefusal, Words: mondayRefusals},
			{Name: "error_code", Tells: FactRefusal, Words: mondayRefusals},
			{Name: "errors.*.extensions.retry_in_seconds", Tells: FactRetryAfter},
			{Name: "error_data.retry_in_seconds", Tells: FactRetryAfter},
			{Name: "error_message", Tells: FactRetryAfter, After: "reset in "},
			{Name: "errors.*.message", Tells: FactRetryAfter, After: "reset in "},
			{Name: "errors.*", Tells: FactRetryAfter, After: "reset in "},
		},
		BodyOfSuccess: true,
	},
	{Vendor: "Omnisend", Source: "https://api-docs.omnisend.com/reference/limits-and-http-status-codes", Hosts: []string{"api.omnisend.com"}},
	{
		Vendor: "Pipedrive",
		Source: "https://pipedrive.readme.io/docs/core-api-concepts-rate-limiting",
		Hosts:  []string{"api.pipedrive.com", "*.pipedrive.com"},
		Scope:  ScopeCredential,
		Fields: []Field{
			{Name: "X-Daily-Ratelimit-Token-Limit", Tells: FactLimit, Quota: "daily-token", Unit: unitTokens, Window: day},
			{Name: "X-Daily-Ratelimit-Token-Remaining", Tells: FactRemaining, Quota: "daily-token", Unit: unitTokens, Window: day},
			{Name: "X-Daily-Requests-Left", Tells: FactRemaining, Quota: "daily-requests", Window: day},
		},
	},
	{
		Vendor:   "Printful", // the reset is the time of the next permit
		Source:   "https://developers.printful.com/docs/#section/Rate-limits",
		Hosts:    []string{"api.printful.com"},
		Advisory: true,
		Reset:    ResetNext,
		Body: []Field{
			{Name: "result", Tells: FactRetryAfter, After: "try again after "},
			{Name: "error.message", Tells: FactRetryAfter, After: "try again after "},
		},
	},
	{
		Vendor: "Prisjakt", // the reset is a delay in milliseconds
		Source: "https://developer.prisjakt.nu/docs/sections/rate-limit",
		Fields: []Field{
			{Name: "X-Rate-Limit-Reset", Tells: FactReset, Per: time.Millisecond},
			{Name: "X-Ratelimit-Reset", Tells: FactReset, Per: time.Millisecond},
		},
	},
	{
		Vendor: "QuickBooks Online",
		Source: "https://developer.intuit.com/app/developer/qbo/docs/learn/limits-and-throttles",
		Hosts:  []string{"quickbooks.api.intuit.com", "sandbox-quickbooks.api.intuit.com"},
		Scope:  ScopeCredential,
		Body: []Field{ // before 429 it was 403, and the name stands in a sentence
			{Name: "Fault.Error.*.code", Tells: FactRefusal, Words: quickBooksRefusals},
			{Name: "fault.error.*.code", Tells: FactRefusal, Words: quickBooksRefusals},
			{Name: "Fault.Error.*.Message", Tells: FactRefusal, Words: quickBooksRefusals},
			{Name: "fault.error.*.message", Tells: FactRefusal, Words: quickBooksRefusals},
			{Name: "IntuitResponse.Fault.Error.Message", Tells: FactRefusal, Words: quickBooksRefusals},
		},
	},
	{
		Vendor: "Sellercloud", // the end of the wait stands in the body
		Source: "https://developer.sellercloud.com/dev-article/rest-api-rate-limiting",
		Hosts:  []string{"*.api.sellercloud.com"},
		Body: []Field{
			{Name: "RateLimitResetTime", Tells: FactRetryAfter},
		},
	},
	{
		Vendor: "Smartsheet",
		Source: "https://developers.smartsheet.com/api/resource_management/getting-started/throttling-and-rate-limiting",
		Hosts:  []string{"api.smartsheet.com", "api.smartsheet.eu", "api.smartsheetgov.com"},
		Scope:  ScopeCredential,
		Reset:  ResetWindow,
		Body: []Field{
			{Name: "errorCode", Tells: FactRefusal, Words: map[string]Scope{"4003": ScopeUnknown}},
		},
	},
	{
		Vendor: "Trello",
		Source: "https://developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits/",
		Hosts:  []string{"api.trello.com", "trello.com"},
		Fields: []Field{
			{Name: "X-Rate-Limit-Api-Token-Max", Tells: FactLimit, Quota: "api-token"},
			{Name: "X-Rate-Limit-Api-Token-Remaining", Tells: FactRemaining, Quota: "api-token"},
			{Name: "X-Rate-Limit-Api-Token-Interval-Ms", Tells: FactWindow, Quota: "api-token", Per: time.Millisecond},
			{Name: "X-Rate-Limit-Api-Key-Max", Tells: FactLimit, Quota: "api-key"},
			{Name: "X-Rate-Limit-Api-Key-Remaining", Tells: FactRemaining, Quota: "api-key"},
			{Name: "X-Rate-Limit-Api-Key-Interval-Ms", Tells: FactWindow, Quota: "api-key", Per: time.Millisecond},
		},
		Body: []Field{
			{Name: "error", Tells: FactScope, Words: map[string]Scope{
				"API_KEY_LIMIT_EXCEEDED":   ScopeLane,
				"API_TOKEN_LIMIT_EXCEEDED": ScopeCredential,
			}},
		},
	},
	{
		Vendor: "Visma eAccounting", // the wait stands in a sentence
		Source: "https://developer.vismaonline.com/docs/rate-limits",
		Hosts:  []string{"eaccountingapi.vismaonline.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "DeveloperErrorMessage", Tells: FactRetryAfter, After: "Try again in "},
		},
	},
	{
		Vendor: "Vonage", // SMS: refuses under 200, in the message's status
		Source: "https://developer.vonage.com/messaging/sms/guides/troubleshooting-sms",
		Hosts:  []string{"rest.nexmo.com", "api.nexmo.com", "api.vonage.com"},
		Body: []Field{
			{Name: "messages.*.status", Tells: FactRefusal, Words: map[string]Scope{"1": ScopeCredential}},
			{Name: "status", Tells: FactRefusal, Words: map[string]Scope{"1": ScopeCredential}, Statuses: []int{200}}, // Verify
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Walmart", // what remains, and when there is more
		Source: "https://developer.walmart.com/suppliers/docs/rate-limiting https://developer.walmart.com/us-marketplace/docs/throttling",
		Hosts:  []string{"*.walmartapis.com"},
		Scope:  ScopeRoute,
		Reset:  ResetNext,
		Fields: []Field{
			{Name: "X-Current-Token-Count", Tells: FactRemaining},
			{Name: "X-Next-Replenishment-Time", Tells: FactReset}, // milliseconds of the epoch
		},
	},
	{
		Vendor: "Xero", // concurrent: no time is told
		Source: "https://developer.xero.com/documentation/guides/oauth2/limits/ https://developer.xero.com/faq/limits",
		Hosts:  []string{"api.xero.com"},
		Fields: []Field{
			{Name: "X-Minlimit-Remaining", Tells: FactRemaining, Quota: "min", Window: time.Minute},
			{Name: "X-Daylimit-Remaining", Tells: FactRemaining, Quota: "day", Window: day},
			{Name: "X-Appminlimit-Remaining", Tells: FactRemaining, Quota: "appmin", Window: time.Minute},
			{Name: "X-Rate-Limit-Problem", Tells: FactScope, Words: map[string]Scope{
				"minute":     ScopeCredential,
				"Minute":     ScopeCredential,
				"day":        ScopeCredential,
				"Day":        ScopeCredential,
				"concurrent": ScopeCredential,
				"appminute":  ScopeLane,
			}},
		},
		Body: []Field{ // 503 before it was 429
			{Name: "", Tells: FactRefusal, Words: map[string]Scope{"oauth_problem=rate*limit*exceeded*": ScopeUnknown}, Statuses: []int{503}},
		},
	},
	{Vendor: "Zoom", Source: "https://developers.zoom.us/docs/api/rate-limits/", Hosts: []string{"api.zoom.us"}},
}

var mondayRefusals = map[string]Scope{
	"ComplexityException":         ScopeCredential,
	"COMPLEXITY_BUDGET_EXHAUSTED": ScopeCredential,
	"DAILY_LIMIT_EXCEEDED":        ScopeLane,
	"FIELD_LIMIT_EXCEEDED":        ScopeRoute, // too many at a time
	"IP_RATE_LIMIT_EXCEEDED":      ScopeGlobal,
}

var quickBooksRefusals = map[string]Scope{
	"003001":             ScopeUnknown,
	"3001":               ScopeUnknown,
	"*ThrottleExceeded*": ScopeUnknown,
}
