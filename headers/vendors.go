package headers

import "time"

const day = 24 * time.Hour

// vendors are the dialects that this package knows. Where a vendor keeps to the
// general rules, its row only says what its words mean. Field names stand as
// net/http writes them, which saves a conversion for each response.
var vendors = []Dialect{
	{Vendor: "Airtable", Hosts: []string{"api.airtable.com"}},
	{
		Vendor: "Amazon SP-API", // the limit is a rate, fractions of a request per second
		Hosts:  []string{"sellingpartnerapi-na.amazon.com", "sellingpartnerapi-eu.amazon.com", "sellingpartnerapi-fe.amazon.com"},
		Fields: []Field{
			{Name: "X-Amzn-Ratelimit-Limit", Tells: FactLimit, Window: time.Second},
		},
	},
	{Vendor: "Anthropic", Hosts: []string{"api.anthropic.com"}, Refuses: []int{529}, Advisory: true, Reset: ResetFull},
	{Vendor: "Asana", Hosts: []string{"app.asana.com"}},
	{
		Vendor: "Atlassian Data Center",
		Fields: []Field{
			{Name: "X-Ratelimit-Interval-Seconds", Tells: FactWindow},
		},
	},
	{Vendor: "Auth0", Hosts: []string{"*.auth0.com"}},
	{
		Vendor:       "AWS",
		Hosts:        []string{"*.amazonaws.com", "*.amazonaws.com.cn"},
		NotProcessed: []int{400},
		Fields: []Field{
			{Name: "X-Amzn-Errortype", Tells: FactRefusal, Words: awsRefusals},
		},
		Body: []Field{
			{Name: "__type", Tells: FactRefusal, Words: awsRefusals},
			{Name: "code", Tells: FactRefusal, Words: awsRefusals},
		},
	},
	{Vendor: "AWS API Gateway"},
	{
		Vendor: "Azure Compute",
		Fields: azureFields,
	},
	{Vendor: "Azure Cosmos DB", Hosts: []string{"*.documents.azure.com"}},
	{Vendor: "Azure OpenAI", Hosts: []string{"*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com"}, Advisory: true, Reset: ResetFull},
	{
		Vendor: "Azure Resource Graph",
		Fields: azureFields,
	},
	{
		Vendor: "Azure Resource Manager", // one host for Compute and Resource Graph too
		Hosts:  []string{"management.azure.com"},
		Fields: azureFields,
	},
	{
		Vendor:       "Binance", // 418: this address is banned for going on after 429
		Hosts:        []string{"api.binance.com", "*.binance.com"},
		Refuses:      []int{418},
		NotProcessed: []int{418},
		Scope:        ScopeGlobal,
		Fields: []Field{
			{Name: "X-Mbx-Used-Weight-1m", Tells: FactUsed, Quota: "used-weight-1m", Unit: "weight", Window: time.Minute},
			{Name: "X-Mbx-Order-Count-10s", Tells: FactUsed, Quota: "order-count-10s", Unit: "orders", Window: 10 * time.Second},
			{Name: "X-Mbx-Order-Count-1m", Tells: FactUsed, Quota: "order-count-1m", Unit: "orders", Window: time.Minute},
			{Name: "X-Mbx-Order-Count-1d", Tells: FactUsed, Quota: "order-count-1d", Unit: "orders", Window: day},
		},
	},
	{Vendor: "Box", Hosts: []string{"api.box.com"}},
	{
		Vendor: "Bybit",
		Hosts:  []string{"api.bybit.com", "api-testnet.bybit.com"},
		Fields: []Field{
			{Name: "X-Bapi-Limit", Tells: FactLimit, Quota: "bapi"},
			{Name: "X-Bapi-Limit-Status", Tells: FactRemaining, Quota: "bapi"},
			{Name: "X-Bapi-Limit-Reset-Timestamp", Tells: FactReset, Quota: "bapi"},
		},
		Body: []Field{
			{Name: "retCode", Tells: FactRefusal, Words: map[string]Scope{"10006": ScopeUnknown, "10018": ScopeGlobal}},
		},
		BodyOfSuccess: true,
	},
	{Vendor: "Cloudflare API", Hosts: []string{"api.cloudflare.com"}},
	{
		Vendor: "Contentful", // the reset is the wait for the next request
		Hosts:  []string{"api.contentful.com", "cdn.contentful.com"},
		Reset:  ResetNext,
	},
	{
		Vendor: "Crossref",
		Hosts:  []string{"api.crossref.org"},
		Fields: []Field{
			{Name: "X-Rate-Limit-Interval", Tells: FactWindow},
		},
	},
	{
		Vendor: "Datadog",
		Hosts:  []string{"*.datadoghq.com", "*.datadoghq.eu", "*.ddog-gov.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Ratelimit-Period", Tells: FactWindow},
			{Name: "X-Ratelimit-Name", Tells: FactName},
		},
	},
	{
		Vendor: "didip/tollbooth",
		Fields: []Field{
			{Name: "X-Rate-Limit-Duration", Tells: FactWindow},
		},
	},
	{Vendor: "DigitalOcean", Hosts: []string{"api.digitalocean.com"}},
	{
		Vendor: "Discord",
		Hosts:  []string{"discord.com", "*.discord.com", "discordapp.com", "*.discordapp.com"},
		Scope:  ScopeRoute,
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Ratelimit-Reset-After", Tells: FactReset},
			{Name: "X-Ratelimit-Reset", Tells: FactReset},
			{Name: "X-Ratelimit-Bucket", Tells: FactName},
			{Name: "X-Ratelimit-Scope", Tells: FactScope, Words: map[string]Scope{"global": ScopeGlobal}},
			{Name: "X-Ratelimit-Global", Tells: FactScope, Words: map[string]Scope{"true": ScopeGlobal}},
		},
	},
	{Vendor: "Docker Hub", Hosts: []string{"registry-1.docker.io", "auth.docker.io", "hub.docker.com"}},
	{
		Vendor: "Dropbox",
		Hosts:  []string{"api.dropboxapi.com", "content.dropboxapi.com"},
		Body: []Field{
			{Name: "error.retry_after", Tells: FactRetryAfter},
		},
	},
	{Vendor: "Elasticsearch"},
	{Vendor: "Envoy"},
	{
		Vendor: "Etsy", // its day is the last 24 hours; one name was cut once
		Hosts:  []string{"openapi.etsy.com", "api.etsy.com"},
		Fields: []Field{
			{Name: "X-Limit-Per-Second", Tells: FactLimit, Quota: "second", Window: time.Second},
			{Name: "X-Remaining-This-Second", Tells: FactRemaining, Quota: "second", Window: time.Second},
			{Name: "X-Remaining-This-Secon", Tells: FactRemaining, Quota: "second", Window: time.Second},
			{Name: "X-Limit-Per-Day", Tells: FactLimit, Quota: "day", Window: day},
			{Name: "X-Remaining-Today", Tells: FactRemaining, Quota: "day", Window: day},
		},
	},
	{Vendor: "express-rate-limit"},
	{Vendor: "Fastly", Hosts: []string{"api.fastly.com"}},
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
	{
		Vendor: "Google APIs",
		Hosts:  []string{"*.googleapis.com"},
		Body: []Field{
			{Name: "error.details.*.retryDelay", Tells: FactRetryAfter}, // google.rpc.RetryInfo
			{Name: "error.errors.*.reason", Tells: FactRefusal, Words: map[string]Scope{
				"userRateLimitExceeded": ScopeCredential,
				"rateLimitExceeded":     ScopeUnknown,
				"quotaExceeded":         ScopeUnknown,
				"dailyLimitExceeded":    ScopeUnknown,
			}},
		},
	},
	{
		Vendor: "Google Gemini",
		Hosts:  []string{"generativelanguage.googleapis.com"},
		Body: []Field{
			{Name: "error.details.*.retryDelay", Tells: FactRetryAfter},
		},
	},
	{Vendor: "Groq", Hosts: []string{"api.groq.com"}, Advisory: true, Reset: ResetFull},
	{Vendor: "Heroku", Hosts: []string{"api.heroku.com"}},
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
	{Vendor: "Hugging Face", Hosts: []string{"huggingface.co"}},
	{
		Vendor: "Imgur",
		Hosts:  []string{"api.imgur.com"},
		Fields: []Field{
			{Name: "X-Ratelimit-Userlimit", Tells: FactLimit, Quota: "user"},
			{Name: "X-Ratelimit-Userremaining", Tells: FactRemaining, Quota: "user"},
			{Name: "X-Ratelimit-Userreset", Tells: FactReset, Quota: "user"},
			{Name: "X-Ratelimit-Clientlimit", Tells: FactLimit, Quota: "client"},
			{Name: "X-Ratelimit-Clientremaining", Tells: FactRemaining, Quota: "client"},
		},
	},
	{Vendor: "Intercom", Hosts: []string{"api.intercom.io"}, Reset: ResetWindow},
	{Vendor: "Jira Cloud", Hosts: []string{"*.atlassian.net", "api.atlassian.com"}, Advisory: true},
	{Vendor: "Klaviyo", Hosts: []string{"a.klaviyo.com"}},
	{Vendor: "Kong Gateway"},
	{
		Vendor: "Kraken", // refuses under 200
		Hosts:  []string{"api.kraken.com"},
		Body: []Field{
			{Name: "error.*", Tells: FactRefusal, Words: map[string]Scope{
				"EAPI:Rate limit exceeded":   ScopeUnknown,
				"EOrder:Rate limit exceeded": ScopeUnknown,
				"EService:Throttled*":        ScopeUnknown,
			}},
		},
		BodyOfSuccess: true,
	},
	{Vendor: "Kubernetes"},
	{
		Vendor: "KuCoin", // the reset is a delay in milliseconds
		Hosts:  []string{"api.kucoin.com"},
		Fields: []Field{
			{Name: "Gw-Ratelimit-Limit", Tells: FactLimit, Quota: "gw"},
			{Name: "Gw-Ratelimit-Remaining", Tells: FactRemaining, Quota: "gw"},
			{Name: "Gw-Ratelimit-Reset", Tells: FactReset, Quota: "gw", Per: time.Millisecond},
		},
	},
	{Vendor: "lemlist", Hosts: []string{"api.lemlist.com"}},
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
	{Vendor: "Mailchimp", Hosts: []string{"*.api.mailchimp.com"}},
	{
		Vendor:   "Meta Graph", // percentages; the wait is in minutes
		Hosts:    []string{"graph.facebook.com", "graph.instagram.com"},
		Advisory: true,
		Fields: []Field{
			{Name: "X-App-Usage", Syntax: SyntaxPercent, Quota: "app", Unit: "percent"},
			{Name: "X-Business-Use-Case-Usage", Syntax: SyntaxPercent, Unit: "percent"},
		},
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: map[string]Scope{
				"4": ScopeLane, "17": ScopeCredential, "32": ScopeUnknown, "613": ScopeUnknown,
				"80000": ScopeUnknown, "80001": ScopeUnknown, "80002": ScopeUnknown, "80003": ScopeUnknown,
				"80004": ScopeUnknown, "80005": ScopeUnknown, "80006": ScopeUnknown, "80008": ScopeUnknown,
				"80009": ScopeUnknown, "80014": ScopeUnknown,
			}},
		},
	},
	{Vendor: "Microsoft Graph", Hosts: []string{"graph.microsoft.com"}},
	{Vendor: "Mistral", Hosts: []string{"api.mistral.ai"}},
	{Vendor: "Notion", Hosts: []string{"api.notion.com"}, Refuses: []int{529}},
	{Vendor: "Okta", Hosts: []string{"*.okta.com", "*.oktapreview.com"}, Reset: ResetWindow},
	{Vendor: "Omnisend", Hosts: []string{"api.omnisend.com"}},
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
	{Vendor: "PagerDuty", Hosts: []string{"api.pagerduty.com"}},
	{
		Vendor:   "Printful", // the reset is the time of the next permit
		Hosts:    []string{"api.printful.com"},
		Advisory: true,
		Reset:    ResetNext,
	},
	{
		Vendor: "Prisjakt", // the reset is a delay in milliseconds
		Fields: []Field{
			{Name: "X-Rate-Limit-Reset", Tells: FactReset, Per: time.Millisecond},
			{Name: "X-Ratelimit-Reset", Tells: FactReset, Per: time.Millisecond},
		},
	},
	{Vendor: "Reddit", Hosts: []string{"oauth.reddit.com", "www.reddit.com"}, Reset: ResetWindow},
	{
		Vendor: "Riot Games",
		Hosts:  []string{"*.api.riotgames.com"},
		Fields: []Field{
			{Name: "X-App-Rate-Limit", Syntax: SyntaxWindows, Tells: FactLimit, Quota: "app"},
			{Name: "X-App-Rate-Limit-Count", Syntax: SyntaxWindows, Tells: FactUsed, Quota: "app"},
			{Name: "X-Method-Rate-Limit", Syntax: SyntaxWindows, Tells: FactLimit, Quota: "method"},
			{Name: "X-Method-Rate-Limit-Count", Syntax: SyntaxWindows, Tells: FactUsed, Quota: "method"},
			{Name: "X-Rate-Limit-Type", Tells: FactScope, Words: map[string]Scope{
				"application": ScopeCredential,
				"method":      ScopeRoute,
				"service":     ScopeRoute,
			}},
		},
	},
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
	{
		Vendor: "Sentry",
		Hosts:  []string{"sentry.io", "*.sentry.io"},
		Fields: []Field{
			{Name: "X-Sentry-Rate-Limits", Syntax: SyntaxExhausted, Unit: "events"},
			{Name: "X-Sentry-Rate-Limit-Concurrentlimit", Tells: FactLimit, Quota: "concurrent", Unit: "concurrent-requests"},
			{Name: "X-Sentry-Rate-Limit-Concurrentremaining", Tells: FactRemaining, Quota: "concurrent", Unit: "concurrent-requests"},
		},
	},
	{Vendor: "SharePoint Online", Hosts: []string{"*.sharepoint.com"}},
	{
		Vendor: "Shopify",
		Hosts:  []string{"*.myshopify.com"},
		Fields: []Field{
			{Name: "X-Shopify-Shop-Api-Call-Limit", Syntax: SyntaxUsedOfLimit, Quota: "shop-api-call"},
		},
	},
	{
		Vendor: "Slack", // each method has limits of its own
		Hosts:  []string{"slack.com", "*.slack.com"},
		Scope:  ScopeRoute,
	},
	{Vendor: "Spotify", Hosts: []string{"api.spotify.com"}},
	{
		Vendor: "Spring Cloud Gateway",
		Fields: []Field{
			{Name: "X-Ratelimit-Burst-Capacity", Tells: FactLimit},
		},
	},
	{
		Vendor: "Stack Exchange", // asks under 200 to be left alone
		Hosts:  []string{"api.stackexchange.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "backoff", Tells: FactRetryAfter},
			{Name: "quota_max", Tells: FactLimit, Quota: "quota"},
			{Name: "quota_remaining", Tells: FactRemaining, Quota: "quota"},
			{Name: "error_id", Tells: FactRefusal, Words: map[string]Scope{"502": ScopeUnknown}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "standard", // the generic dialect by a name
	},
	{
		Vendor: "Strava", // pairs: of a quarter of an hour, of a day
		Hosts:  []string{"www.strava.com"},
		Fields: []Field{
			{Name: "X-Ratelimit-Limit", Member: 1, Tells: FactLimit, Quota: "15min", Window: 15 * time.Minute},
			{Name: "X-Ratelimit-Limit", Member: 2, Tells: FactLimit, Quota: "daily", Window: day},
			{Name: "X-Ratelimit-Usage", Member: 1, Tells: FactUsed, Quota: "15min", Window: 15 * time.Minute},
			{Name: "X-Ratelimit-Usage", Member: 2, Tells: FactUsed, Quota: "daily", Window: day},
			{Name: "X-Readratelimit-Limit", Member: 1, Tells: FactLimit, Quota: "read-15min", Window: 15 * time.Minute},
			{Name: "X-Readratelimit-Limit", Member: 2, Tells: FactLimit, Quota: "read-daily", Window: day},
			{Name: "X-Readratelimit-Usage", Member: 1, Tells: FactUsed, Quota: "read-15min", Window: 15 * time.Minute},
			{Name: "X-Readratelimit-Usage", Member: 2, Tells: FactUsed, Quota: "read-daily", Window: day},
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
	{
		Vendor: "Telegram",
		Hosts:  []string{"api.telegram.org"},
		Body: []Field{
			{Name: "parameters.retry_after", Tells: FactRetryAfter},
		},
	},
	{
		Vendor: "Trello",
		Hosts:  []string{"api.trello.com"},
		Fields: []Field{
			{Name: "X-Rate-Limit-Api-Token-Max", Tells: FactLimit, Quota: "api-token"},
			{Name: "X-Rate-Limit-Api-Token-Remaining", Tells: FactRemaining, Quota: "api-token"},
			{Name: "X-Rate-Limit-Api-Token-Interval-Ms", Tells: FactWindow, Quota: "api-token", Per: time.Millisecond},
			{Name: "X-Rate-Limit-Api-Key-Max", Tells: FactLimit, Quota: "api-key"},
			{Name: "X-Rate-Limit-Api-Key-Remaining", Tells: FactRemaining, Quota: "api-key"},
			{Name: "X-Rate-Limit-Api-Key-Interval-Ms", Tells: FactWindow, Quota: "api-key", Per: time.Millisecond},
		},
	},
	{Vendor: "Twilio", Hosts: []string{"api.twilio.com"}},
	{Vendor: "Vimeo", Hosts: []string{"api.vimeo.com"}},
	{
		Vendor: "Wikimedia", // a database that lags refuses under 200
		Hosts:  []string{"*.wikipedia.org", "www.wikidata.org", "commons.wikimedia.org"},
		Fields: []Field{
			{Name: "Mediawiki-Api-Error", Tells: FactRefusal, Words: map[string]Scope{"maxlag": ScopeLane}},
		},
	},
	{
		Vendor: "X (Twitter)", // a day's quota beside those of the quarters of an hour
		Hosts:  []string{"api.x.com", "api.twitter.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-App-Limit-24hour-Limit", Tells: FactLimit, Quota: "app-24hour", Window: day},
			{Name: "X-App-Limit-24hour-Remaining", Tells: FactRemaining, Quota: "app-24hour", Window: day},
			{Name: "X-App-Limit-24hour-Reset", Tells: FactReset, Quota: "app-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Limit", Tells: FactLimit, Quota: "user-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Remaining", Tells: FactRemaining, Quota: "user-24hour", Window: day},
			{Name: "X-User-Limit-24hour-Reset", Tells: FactReset, Quota: "user-24hour", Window: day},
		},
	},
	{
		Vendor: "Xero",
		Hosts:  []string{"api.xero.com"},
		Fields: []Field{
			{Name: "X-Minlimit-Remaining", Tells: FactRemaining, Quota: "min", Window: time.Minute},
			{Name: "X-Daylimit-Remaining", Tells: FactRemaining, Quota: "day", Window: day},
			{Name: "X-Appminlimit-Remaining", Tells: FactRemaining, Quota: "appmin", Window: time.Minute},
			{Name: "X-Rate-Limit-Problem", Tells: FactScope, Words: map[string]Scope{
				"minute":     ScopeCredential,
				"day":        ScopeCredential,
				"concurrent": ScopeCredential,
				"appminute":  ScopeLane,
			}},
		},
	},
	{
		Vendor: "Yelp Fusion",
		Hosts:  []string{"api.yelp.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "Ratelimit-Dailylimit", Tells: FactLimit, Window: day},
			{Name: "Ratelimit-Resettime", Tells: FactReset},
		},
	},
	{
		Vendor: "Zendesk", // one quota under two names, and one of an endpoint
		Hosts:  []string{"*.zendesk.com"},
		Fields: []Field{
			{Name: "X-Rate-Limit", Tells: FactLimit},
			{Name: "Zendesk-Ratelimit-Tickets-Index", Syntax: SyntaxPairs, Quota: "tickets-index"},
		},
	},
	{Vendor: "Zoom", Hosts: []string{"api.zoom.us"}},
}

// awsRefusals are the exceptions by which AWS throttles, under 400 as well. What
// names the service may stand before, an address after.
var awsRefusals = map[string]Scope{
	"*Throttl*": ScopeUnknown, // ThrottlingException, ThrottledException, RequestThrottled
	"*ProvisionedThroughputExceededException*": ScopeUnknown,
	"*RequestLimitExceeded*":                   ScopeUnknown,
	"*BandwidthLimitExceeded*":                 ScopeUnknown,
	"*TooManyRequestsException*":               ScopeUnknown,
	"*SlowDown":                                ScopeUnknown,
	"*PriorRequestNotComplete*":                ScopeUnknown,
}

// azureFields are of Azure Compute, a line for each policy, and of Resource Graph.
var azureFields = []Field{
	{Name: "X-Ms-Ratelimit-Remaining-Resource", Syntax: SyntaxNamed, Tells: FactRemaining},
	{Name: "X-Ms-User-Quota-Remaining", Tells: FactRemaining, Quota: "user-quota"},
	{Name: "X-Ms-User-Quota-Resets-After", Tells: FactReset, Quota: "user-quota"},
}
