package headers

import "time"

// businessVendors are the dialects of vendors for customers, payments, identities,
// documents and mail.
var businessVendors = []Dialect{
	{
		Vendor: "Airtable", // after a refusal 30 s of silence, which only its documentation tells
		Source: "https://airtable.com/developers/web/api/rate-limits",
		Hosts:  []string{"api.airtable.com"},
	},
	{
		Vendor: "Asana",
		Source: "https://developers.asana.com/docs/rate-limits",
		Hosts:  []string{"app.asana.com"},
		Scope:  ScopeCredential,
	},
	{
		Vendor: "Auth0",
		Source: "https://auth0.com/docs/troubleshoot/customer-support/operational-policies/rate-limit-policy",
		Hosts:  []string{"*.auth0.com"},
		Reset:  ResetNext, // when one more call is allowed, for a bucket
	},
	{
		Vendor: "Box", // 202 with a wait: not ready yet
		Source: "https://developer.box.com/guides/api-calls/permissions-and-errors/rate-limits/",
		Hosts:  []string{"api.box.com", "upload.box.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"rate_limit_exceeded": ScopeUnknown}},
		},
	},
	{
		Vendor: "Contentful", // the reset is the wait for the next request
		Source: "https://www.contentful.com/developers/docs/references/content-management-api/#/introduction/api-rate-limits",
		Hosts:  []string{"api.contentful.com", "cdn.contentful.com", "preview.contentful.com", "graphql.contentful.com", "upload.contentful.com"},
		Reset:  ResetNext,
		Body: []Field{
			{Name: "sys.id", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"RateLimitExceeded": ScopeUnknown}},
		},
	},
	{
		Vendor: "Dropbox", // a namespace that is locked is told as its own reason, under 409 as well
		Source: "https://www.dropbox.com/developers/reference/data-ingress-guide https://developers.dropbox.com/error-handling-guide",
		Hosts:  []string{"api.dropboxapi.com", "content.dropboxapi.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "error.retry_after", Tells: FactRetryAfter},
			{Name: "error_summary", Tells: FactRefusal, Words: map[string]Scope{
				"*too_many_write_operations*": ScopeCredential,
				"*too_many_requests*":         ScopeCredential,
			}},
		},
	},
	{
		Vendor:          "HubSpot", // 477: the account is being moved; 423: locked for two seconds
		Source:          "https://developers.hubspot.com/docs/api-reference/error-handling https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines",
		Hosts:           []string{"api.hubapi.com"},
		RefusesWithWait: []int{423, 477},
		Fields: []Field{
			{Name: "X-Hubspot-Ratelimit-Max", Tells: FactLimit},
			{Name: "X-Hubspot-Ratelimit-Interval-Milliseconds", Tells: FactWindow, Per: time.Millisecond},
			{Name: "X-Hubspot-Ratelimit-Daily", Tells: FactLimit, Quota: "daily", Window: day},
			{Name: "X-Hubspot-Ratelimit-Daily-Remaining", Tells: FactRemaining, Quota: "daily", Window: day},
			{Name: "X-Hubspot-Ratelimit-Secondly", Tells: FactLimit, Quota: "secondly", Window: time.Second},
			{Name: "X-Hubspot-Ratelimit-Secondly-Remaining", Tells: FactRemaining, Quota: "secondly", Window: time.Second},
		},
		Body: []Field{
			{Name: "errorType", Tells: FactRefusal, Words: map[string]Scope{"RATE_LIMIT": ScopeUnknown}},
			{Name: "category", Tells: FactRefusal, Words: map[string]Scope{"RATE_LIMITS": ScopeUnknown}},
		},
	},
	{
		Vendor: "Intercom", // slices of ten seconds
		Source: "https://developers.intercom.com/docs/references/rest-api/errors/rate-limiting",
		Hosts:  []string{"api.intercom.io", "api.eu.intercom.io", "api.au.intercom.io"},
		Reset:  ResetWindow,
		Body: []Field{
			{Name: "errors.*.code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"rate_limit_exceeded": ScopeUnknown}},
		},
	},
	{
		Vendor: "Klaviyo", // a refusal has no quotas, and may tell its wait in a sentence
		Source: "https://developers.klaviyo.com/en/docs/rate_limits_and_error_handling",
		Hosts:  []string{"a.klaviyo.com"},
		Scope:  ScopeRoute, // each endpoint has limits of its own
		Reset:  ResetWindow,
		Body: []Field{
			{Name: "errors.*.detail", After: "available in ", Tells: FactRetryAfter},
		},
	},
	{
		Vendor:  "Microsoft Graph", // 509: bandwidth; of a batch each answer has a status of its own
		Source:  "https://learn.microsoft.com/en-us/graph/throttling https://learn.microsoft.com/en-us/graph/errors",
		Hosts:   []string{"graph.microsoft.com", "graph.microsoft.us", "dod-graph.microsoft.us", "microsoftgraph.chinacloudapi.cn"},
		Refuses: []int{509},
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: graphRefusals},
			{Name: "error.innerError.code", Tells: FactRefusal, Words: graphRefusals},
			{Name: "error.innererror.code", Tells: FactRefusal, Words: graphRefusals},
			{Name: "error.retryAfterSeconds", Tells: FactRetryAfter},
		},
	},
	{
		Vendor: "Okta", // too many at once: the same fields, with a limit of zero
		Source: "https://developer.okta.com/docs/reference/rl-best-practices/ https://developer.okta.com/docs/reference/error-codes/",
		Hosts:  []string{"*.okta.com", "*.oktapreview.com", "*.okta-emea.com"},
		Reset:  ResetWindow,
		Body: []Field{
			{Name: "errorCode", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"E0000047": ScopeUnknown}},
		},
	},
	{
		Vendor: "Salesforce", // 24 hours back from now, counted late; SOAP refuses under 500
		Source: "https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_calls_concepts_core_data_objects.htm",
		Hosts:  []string{"*.salesforce.com"},
		Scope:  ScopeLane,
		Fields: []Field{
			{Name: "Sforce-Limit-Info", Syntax: SyntaxUsedOfLimit},
		},
		Body: []Field{
			{Name: "*.errorCode", Tells: FactRefusal, NotProcessed: true, Words: salesforceRefusals},
			{Name: "errorCode", Tells: FactRefusal, NotProcessed: true, Words: salesforceRefusals},
			{Name: "error.exceptionCode", Tells: FactRefusal, NotProcessed: true, Words: salesforceRefusals},
			{Name: "error_description", Tells: FactRefusal, Words: map[string]Scope{"login rate exceeded": ScopeCredential}},
			{Name: "Envelope.Body.Fault.faultcode", Tells: FactRefusal, NotProcessed: true, Words: salesforceRefusals},
			{Name: "Envelope.Body.Fault.detail.*.exceptionCode", Tells: FactRefusal, NotProcessed: true, Words: salesforceRefusals},
		},
	},
	{
		Vendor: "SendGrid",
		Source: "https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/rate-limits",
		Hosts:  []string{"api.sendgrid.com", "api.eu.sendgrid.com"},
		Scope:  ScopeRoute,
		Reset:  ResetWindow,
	},
	{
		Vendor:  "SharePoint Online", // 509: bandwidth
		Source:  "https://learn.microsoft.com/en-us/sharepoint/dev/general-development/how-to-avoid-getting-throttled-or-blocked-in-sharepoint-online",
		Hosts:   []string{"*.sharepoint.com"},
		Refuses: []int{509},
		Reset:   ResetWindow,
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: graphRefusals},
		},
	},
	{
		Vendor: "Shopify", // GraphQL refuses under 200, and tells what it costs and how fast the bucket fills
		Source: "https://shopify.dev/docs/api/usage/rate-limits https://shopify.dev/docs/api/admin-graphql#status_and_error_codes",
		Hosts:  []string{"*.myshopify.com"},
		Fields: []Field{
			{Name: "X-Shopify-Shop-Api-Call-Limit", Syntax: SyntaxUsedOfLimit, Quota: "shop-api-call"},
		},
		Body: []Field{
			{Name: "errors.*.extensions.code", Tells: FactRefusal, NotProcessed: true, If: shopifyGraphQL, Words: map[string]Scope{"THROTTLED": ScopeUnknown}},
			{Name: "errors.*.message", Tells: FactRefusal, NotProcessed: true, If: shopifyGraphQL, Words: map[string]Scope{"Throttled": ScopeUnknown}},
			{Name: "extensions.cost.throttleStatus.maximumAvailable", Tells: FactLimit, Quota: "cost", Unit: "points", If: shopifyGraphQL},
			{Name: "extensions.cost.throttleStatus.currentlyAvailable", Tells: FactRemaining, Quota: "cost", Unit: "points", If: shopifyGraphQL},
			{Name: "extensions.cost.throttleStatus.restoreRate", Tells: FactRate, Quota: "cost", If: shopifyGraphQL},
			{Name: "extensions.cost.requestedQueryCost", Tells: FactCost, Quota: "cost", If: shopifyGraphQL},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Stripe",
		Source: "https://docs.stripe.com/rate-limits https://docs.stripe.com/error-low-level",
		Hosts:  []string{"api.stripe.com", "files.stripe.com"},
		Fields: []Field{
			{Name: "Stripe-Rate-Limited-Reason", Tells: FactScope, Words: map[string]Scope{
				"global-rate":          ScopeLane,
				"global-concurrency":   ScopeLane,
				"endpoint-rate":        ScopeRoute,
				"endpoint-concurrency": ScopeRoute,
				"resource-specific":    ScopeRequest,
			}},
		},
		Body: []Field{
			// Somebody else holds the object: no quota was met.
			{Name: "error.code", Tells: FactScope, Words: map[string]Scope{"lock_timeout": ScopeRequest}},
			{Name: "error.code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"rate_limit": ScopeUnknown}},
		},
	},
	{
		Vendor: "Twilio", // too many at once
		Source: "https://www.twilio.com/docs/api/errors/20429 https://help.twilio.com/articles/360044308153",
		Hosts:  []string{"api.twilio.com", "*.twilio.com"},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"20429": ScopeUnknown}},
			{Name: "TwilioResponse.RestException.Code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"20429": ScopeUnknown}},
		},
	},
	{
		Vendor: "Zendesk", // one quota under two names, and those of endpoints
		Source: "https://developer.zendesk.com/api-reference/introduction/rate-limits/",
		Hosts:  []string{"*.zendesk.com"},
		Fields: []Field{
			{Name: "X-Rate-Limit", Tells: FactLimit},
			{Name: "Zendesk-Ratelimit-*", Syntax: SyntaxPairs},
		},
	},
}

// graphRefusals are the codes by which Microsoft Graph throttles, under 403, 424 (of a
// request that another one needed) and 503 as well.
var graphRefusals = map[string]Scope{
	"TooManyRequests":              ScopeUnknown,
	"tooManyRequests":              ScopeUnknown,
	"activityLimitReached":         ScopeUnknown,
	"throttledRequest":             ScopeUnknown,
	"ApplicationThrottled":         ScopeUnknown,
	"Request_ThrottledTemporarily": ScopeUnknown,
	"MailboxConcurrency":           ScopeUnknown,
	"ErrorServerBusy":              ScopeUnknown,
}

var salesforceRefusals = map[string]Scope{
	"REQUEST_LIMIT_EXCEEDED":      ScopeLane,
	"*:REQUEST_LIMIT_EXCEEDED":    ScopeLane,
	"TXN_SECURITY_METERING_ERROR": ScopeLane,
	"ExceededQuota":               ScopeLane, // the bulk interface
}

// shopifyGraphQL is the condition of Shopify's GraphQL: what lacks the field that all
// answers of its REST interface have.
var shopifyGraphQL = map[string]string{"X-Shopify-Shop-Api-Call-Limit": ""}
