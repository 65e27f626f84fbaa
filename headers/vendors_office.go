package headers

import "time"

// officeVendors are more of what offices sign, pay and write with.
var officeVendors = []Dialect{
	{
		Vendor: "DocuSign", // refuses under 400
		Source: "https://developers.docusign.com/platform/resource-limits https://developers.docusign.com/docs/esign-rest-api/esign101/rules-and-limits/",
		Hosts:  []string{"*.docusign.net", "*.docusign.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Burstlimit-Limit", Tells: FactLimit, Quota: "burst"},
			{Name: "X-Burstlimit-Remaining", Tells: FactRemaining, Quota: "burst"},
		},
		Body: []Field{
			{Name: "errorCode", Tells: FactRefusal, Words: map[string]Scope{
				"HOURLY_APIINVOCATION_LIMIT_EXCEEDED":    ScopeLane,
				"BURST_APIINVOCATION_LIMIT_EXCEEDED":     ScopeLane,
				"HOURLY_ENVELOPE_POLLING_LIMIT_EXCEEDED": ScopeRoute,
			}},
		},
	},
	{
		Vendor: "Exchange Web Services", // SOAP: refuses under 500, the wait in milliseconds
		Source: "https://learn.microsoft.com/en-us/exchange/client-developer/exchange-web-services/ews-throttling-in-exchange",
		Hosts:  []string{"outlook.office365.com", "outlook.office.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "Envelope.Body.Fault.detail.ResponseCode", Tells: FactRefusal, Words: map[string]Scope{
				"ErrorServerBusy":                ScopeUnknown,
				"ErrorExceededConnectionCount":   ScopeUnknown,
				"ErrorExceededFindCountLimit":    ScopeRequest,
				"ErrorExceededSubscriptionCount": ScopeRequest,
			}},
			{Name: "error.code", Tells: FactRefusal, Words: graphRefusals}, // Outlook's REST
			{Name: "", After: `"BackOffMilliseconds">`, Tells: FactRetryAfter, Per: time.Millisecond},
		},
	},
	{
		Vendor: "Microsoft Advertising", // SOAP: refuses under 500; a minute of silence stands in the documentation alone
		Source: "https://learn.microsoft.com/en-us/advertising/guides/services-protocol#throttling",
		Hosts:  []string{"*.api.bingads.microsoft.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "Envelope.Body.Fault.detail.*.Errors.*.ErrorCode", Tells: FactRefusal, Words: bingRefusals},
			{Name: "Envelope.Body.Fault.detail.*.OperationErrors.*.ErrorCode", Tells: FactRefusal, Words: bingRefusals},
		},
	},
	{
		Vendor: "Gorgias",
		Source: "https://developers.gorgias.com/reference/limitations-1",
		Hosts:  []string{"*.gorgias.com"},
		Scope:  ScopeLane,
		Fields: []Field{
			{Name: "X-Gorgias-Account-Api-Call-Limit", Syntax: SyntaxUsedOfLimit, Quota: "account-api-call"},
		},
	},
	{
		Vendor: "Lightspeed Retail",
		Source: "https://developers.lightspeedhq.com/retail/introduction/ratelimits/",
		Hosts:  []string{"api.lightspeedapp.com"},
		Scope:  ScopeCredential,
		Fields: []Field{
			{Name: "X-Ls-Api-Bucket-Level", Syntax: SyntaxUsedOfLimit, Quota: "bucket-level"},
		},
	},
	{
		Vendor: "NetSuite", // 400, or a fault of SOAP: rejected for too many at a time
		Source: "https://docs.oracle.com/en/cloud/saas/netsuite/ns-online-help/bridgehead_1525252812.html",
		Hosts:  []string{"*.suitetalk.api.netsuite.com", "*.restlets.api.netsuite.com"},
		Scope:  ScopeLane,
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: map[string]Scope{"SSS_REQUEST_LIMIT_EXCEEDED": ScopeUnknown}, NotProcessed: true},
			{Name: "Envelope.Body.Fault.detail.*.code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{
				"WS_REQUEST_BLOCKED":         ScopeUnknown,
				"WS_CONCUR_SESSION_DISALLWD": ScopeCredential,
			}},
		},
	},
	{
		Vendor: "PayPal",
		Source: "https://developer.paypal.com/api/rest/rate-limiting/",
		Hosts:  []string{"api-m.paypal.com", "api-m.sandbox.paypal.com", "api.paypal.com"},
		Body: []Field{
			{Name: "name", Tells: FactRefusal, Words: map[string]Scope{"RATE_LIMIT_REACHED": ScopeUnknown}},
		},
	},
	{
		Vendor: "Plaid", // 400 before it was 429
		Source: "https://plaid.com/docs/errors/rate-limit-exceeded/",
		Hosts:  []string{"production.plaid.com", "sandbox.plaid.com", "development.plaid.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "error_type", Tells: FactRefusal, Words: map[string]Scope{"RATE_LIMIT_EXCEEDED": ScopeUnknown, "RATE_LIMIT": ScopeUnknown}},
		},
	},
	{
		Vendor: "RingCentral", // each group of methods has limits of its own
		Source: "https://developers.ringcentral.com/guide/basics/rate-limits",
		Hosts:  []string{"platform.ringcentral.com", "platform.devtest.ringcentral.com"},
		Scope:  ScopeCredential,
		Fields: []Field{
			{Name: "X-Rate-Limit-Group", Tells: FactName},
			{Name: "X-Rate-Limit-Window", Tells: FactWindow},
		},
	},
	{
		Vendor: "Salesforce Marketing Cloud",
		Source: "https://developer.salesforce.com/docs/atlas.en-us.noversion.mc-apis.meta/mc-apis/rate-limiting-errors.htm",
		Hosts:  []string{"*.rest.marketingcloudapis.com"},
		Body: []Field{
			{Name: "retryAfter", Tells: FactRetryAfter},
		},
	},
	{
		Vendor:  "SparkPost", // 420: what may be sent in a day or an hour
		Source:  "https://developers.sparkpost.com/api/#header-errors",
		Hosts:   []string{"api.sparkpost.com", "api.eu.sparkpost.com"},
		Refuses: []int{420},
		Scope:   ScopeLane,
	},
	{
		Vendor: "Square",
		Source: "https://developer.squareup.com/docs/build-basics/general-considerations/handling-errors",
		Hosts:  []string{"connect.squareup.com", "connect.squareupsandbox.com"},
		Body: []Field{
			{Name: "errors.*.code", Tells: FactRefusal, Words: map[string]Scope{"RATE_LIMITED": ScopeUnknown}},
		},
	},
	{
		Vendor: "Zoho", // refuses under 400 too
		Source: "https://www.zoho.com/crm/developer/docs/api/v8/api-limits.html https://help.zoho.com/portal/de/community/topic/zoho-cliq-api-rate-limit",
		Hosts:  []string{"*.zoho.com", "*.zoho.eu", "*.zoho.in", "www.zohoapis.com", "www.zohoapis.eu", "www.zohoapis.in"},
		Body: []Field{
			{Name: "error_description", Tells: FactRefusal, Words: map[string]Scope{"You have made too many requests*": ScopeCredential}},
		},
	},
}

var bingRefusals = map[string]Scope{
	"CallRateExceeded":           ScopeUnknown,
	"ConcurrentRequestOverLimit": ScopeUnknown,
}
