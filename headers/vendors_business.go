package headers

import "time"

// businessVendors are the dialects of customers, payments, identities, documents and mail.
var businessVendors = []Dialect{
	{Vendor: "Airtable", Hosts: []string{"api.airtable.com"}},
	{Vendor: "Asana", Hosts: []string{"app.asana.com"}},
	{Vendor: "Auth0", Hosts: []string{"*.auth0.com"}},
	{Vendor: "Box", Hosts: []string{"api.box.com"}},
	{
		Vendor: "Contentful", // the reset is the wait for the next request
		Hosts:  []string{"api.contentful.com", "cdn.contentful.com"},
		Reset:  ResetNext,
	},
	{
		Vendor: "Dropbox",
		Hosts:  []string{"api.dropboxapi.com", "content.dropboxapi.com"},
		Body: []Field{
			{Name: "error.retry_after", Tells: FactRetryAfter},
		},
	},
	{
		Vendor: "HubSpot",
		Hosts:  []string{"api.hubapi.com"},
		Fields: []Field{
			{Name: "X-Hubspot-Ratelimit-Max", Tells: FactLimit},
			{Name: "X-Hubspot-Ratelimit-Interval-Milliseconds", Tells: FactWindow, Per: time.Millisecond},
			{Name: "X-Hubspot-Ratelimit-Daily", Tells: FactLimit, Quota: "daily", Window: day},
			{Name: "X-Hubspot-Ratelimit-Daily-Remaining", Tells: FactRemaining, Quota: "daily", Window: day},
			{Name: "X-Hubspot-Ratelimit-Secondly", Tells: FactLimit, Quota: "secondly", Window: time.Second},
			{Name: "X-Hubspot-Ratelimit-Secondly-Remaining", Tells: FactRemaining, Quota: "secondly", Window: time.Second},
		},
	},
	{Vendor: "Intercom", Hosts: []string{"api.intercom.io"}, Reset: ResetWindow},
	{Vendor: "Klaviyo", Hosts: []string{"a.klaviyo.com"}},
	{Vendor: "Microsoft Graph", Hosts: []string{"graph.microsoft.com"}},
	{Vendor: "Okta", Hosts: []string{"*.okta.com", "*.oktapreview.com"}, Reset: ResetWindow},
	{
		Vendor: "Salesforce", // 24 hours back from now, counted late
		Hosts:  []string{"*.salesforce.com"},
		Fields: []Field{
			{Name: "Sforce-Limit-Info", Syntax: SyntaxUsedOfLimit},
		},
		Body: []Field{
			{Name: "*.errorCode", Tells: FactRefusal, Words: map[string]Scope{"REQUEST_LIMIT_EXCEEDED": ScopeLane}},
		},
	},
	{Vendor: "SendGrid", Hosts: []string{"api.sendgrid.com"}, Reset: ResetWindow},
	{Vendor: "SharePoint Online", Hosts: []string{"*.sharepoint.com"}},
	{
		Vendor: "Shopify",
		Hosts:  []string{"*.myshopify.com"},
		Fields: []Field{
			{Name: "X-Shopify-Shop-Api-Call-Limit", Syntax: SyntaxUsedOfLimit, Quota: "shop-api-call"},
		},
	},
	{
		Vendor: "Stripe",
		Hosts:  []string{"api.stripe.com"},
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
		},
	},
	{Vendor: "Twilio", Hosts: []string{"api.twilio.com"}},
	{
		Vendor: "Zendesk", // one quota under two names, and one of an endpoint
		Hosts:  []string{"*.zendesk.com"},
		Fields: []Field{
			{Name: "X-Rate-Limit", Tells: FactLimit},
			{Name: "Zendesk-Ratelimit-Tickets-Index", Syntax: SyntaxPairs, Quota: "tickets-index"},
		},
	},
}
