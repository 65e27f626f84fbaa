package headers

import "time"

// mediaVendors are what people read, watch, hear, play and talk through.
var mediaVendors = []Dialect{
	{
		Vendor: "Crossref",
		Source: "https://github.com/CrossRef/rest-api-doc#rate-limits https://www.crossref.org/documentation/retrieve-metadata/rest-api/access-and-authentication/",
		Hosts:  []string{"api.crossref.org"},
		Fields: []Field{
			{Name: "X-Rate-Limit-Interval", Tells: FactWindow},
			{Name: "X-Concurrency-Limit", Tells: FactLimit, Quota: "concurrency", Unit: "concurrent-requests"},
		},
	},
	{
		Vendor: "Discogs",
		Source: "https://www.discogs.com/developers/#page:home,header:home-rate-limiting",
		Hosts:  []string{"api.discogs.com"},
		Fields: []Field{
			{Name: "X-Discogs-Ratelimit", Tells: FactLimit},
			{Name: "X-Discogs-Ratelimit-Used", Tells: FactUsed},
			{Name: "X-Discogs-Ratelimit-Remaining", Tells: FactRemaining},
		},
	},
	{
		Vendor: "Etsy", // its day is the last 24 hours; one name was cut once
		Source: "https://developers.etsy.com/documentation/essentials/rate-limits/",
		Hosts:  []string{"openapi.etsy.com", "api.etsy.com"},
		Fields: []Field{
			{Name: "X-Limit-Per-Second", Tells: FactLimit, Quota: "second", Window: time.Second},
			{Name: "X-Remaining-This-Second", Tells: FactRemaining, Quota: "second", Window: time.Second},
			{Name: "X-Remaining-This-Secon", Tells: FactRemaining, Quota: "second", Window: time.Second},
			{Name: "X-Limit-Per-Day", Tells: FactLimit, Quota: "day", Window: day},
			{Name: "X-Remaining-Today", Tells: FactRemaining, Quota: "day", Window: day},
		},
	},
	{
		Vendor: "Fitbit", // an hour for each user
		Source: "https://dev.fitbit.com/build/reference/web-api/developer-guide/application-design/#Rate-Limits",
		Hosts:  []string{"api.fitbit.com"},
		Scope:  ScopeCredential,
		Reset:  ResetWindow,
	},
	{
		Vendor: "Imgur", // uploads have a quota of their own
		Source: "https://apidocs.imgur.com/",
		Hosts:  []string{"api.imgur.com"},
		Fields: []Field{
			{Name: "X-Ratelimit-Userlimit", Tells: FactLimit, Quota: "user"},
			{Name: "X-Ratelimit-Userremaining", Tells: FactRemaining, Quota: "user"},
			{Name: "X-Ratelimit-Userreset", Tells: FactReset, Quota: "user"},
			{Name: "X-Ratelimit-Clientlimit", Tells: FactLimit, Quota: "client"},
			{Name: "X-Ratelimit-Clientremaining", Tells: FactRemaining, Quota: "client"},
			{Name: "X-Post-Rate-Limit-Limit", Tells: FactLimit, Quota: "post"},
			{Name: "X-Post-Rate-Limit-Remaining", Tells: FactRemaining, Quota: "post"},
			{Name: "X-Post-Rate-Limit-Reset", Tells: FactReset, Quota: "post"},
		},
	},
	{
		Vendor:   "Meta Graph", // percentages; the wait is in minutes, that of an account in seconds
		Source:   "https://developers.facebook.com/docs/graph-api/overview/rate-limiting https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes",
		Hosts:    []string{"graph.facebook.com", "graph-video.facebook.com", "graph.instagram.com", "graph.threads.net"},
		Advisory: true,
		Fields: []Field{
			{Name: "X-App-Usage", Syntax: SyntaxPercent, Quota: "app", Unit: "percent"},
			{Name: "X-Page-Usage", Syntax: SyntaxPercent, Quota: "page", Unit: "percent"},
			{Name: "X-Ad-Account-Usage", Syntax: SyntaxPercent, Quota: "ad-account", Unit: "percent"},
			{Name: "X-Fb-Ads-Insights-Throttle", Syntax: SyntaxPercent, Quota: "ads-insights", Unit: "percent"},
			{Name: "X-Business-Use-Case-Usage", Syntax: SyntaxPercent, Unit: "percent"},
		},
		Body: []Field{ // what a throttled app or user asks for fails, by Meta's word
			{Name: "error.code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{
				"4":      ScopeLane,       // the app
				"17":     ScopeCredential, // the user
				"32":     ScopeCredential, // the page
				"341":    ScopeLane,
				"613":    ScopeUnknown,
				"80000":  ScopeUnknown,
				"80001":  ScopeUnknown,
				"80002":  ScopeUnknown,
				"80003":  ScopeUnknown,
				"80004":  ScopeUnknown,
				"80005":  ScopeUnknown,
				"80006":  ScopeUnknown,
				"80007":  ScopeCredential, // the WhatsApp account
				"80008":  ScopeUnknown,
				"80009":  ScopeUnknown,
				"80014":  ScopeUnknown,
				"130429": ScopeLane,    // what Cloud API takes in a second
				"131056": ScopeRequest, // too many messages to this one customer
				"133016": ScopeRoute,   // registrations
			}},
		},
	},
	{
		Vendor:  "MusicBrainz", // refuses under 503
		Source:  "https://musicbrainz.org/doc/MusicBrainz_API/Rate_Limiting",
		Hosts:   []string{"musicbrainz.org", "*.musicbrainz.org"},
		Refuses: []int{503},
		Scope:   ScopeGlobal,
	},
	{
		Vendor: "Pinterest",
		Source: "https://developers.pinterest.com/docs/reference/rate-limits/",
		Hosts:  []string{"api.pinterest.com"},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"8": ScopeUnknown}, Statuses: []int{403, 429}},
		},
	},
	{
		Vendor: "Riot Games", // service: none of our quotas was met
		Source: "https://developer.riotgames.com/docs/portal#web-apis_rate-limiting",
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
		Vendor: "Stack Exchange", // asks under 200 to be left alone; refuses under 400
		Source: "https://api.stackexchange.com/docs/throttle https://api.stackexchange.com/docs/error-handling",
		Hosts:  []string{"api.stackexchange.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "backoff", Tells: FactRetryAfter},
			{Name: "quota_max", Tells: FactLimit, Quota: "quota"},
			{Name: "quota_remaining", Tells: FactRemaining, Quota: "quota"},
			{Name: "error_id", Tells: FactRefusal, Words: map[string]Scope{"502": ScopeLane}},
			{Name: "error_name", Tells: FactRefusal, Words: map[string]Scope{"throttle_violation": ScopeLane}},
			{Name: "error_message", Tells: FactRetryAfter, After: "more requests available in "},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor:         "Strava", // pairs: of a quarter of an hour, of a day
		Source:         "https://developers.strava.com/docs/rate-limits/",
		Hosts:          []string{"www.strava.com"},
		Scope:          ScopeLane,
		RefusesByQuota: []int{403}, // before it was 429
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
		Vendor: "Telegram",
		Source: "https://core.telegram.org/bots/api#responseparameters",
		Hosts:  []string{"api.telegram.org"},
		Body: []Field{
			{Name: "parameters.retry_after", Tells: FactRetryAfter},
			{Name: "description", Tells: FactRetryAfter, After: "retry after "},
		},
	},
	{
		Vendor: "Twitch",
		Source: "https://dev.twitch.tv/docs/api/guide/#twitch-rate-limits",
		Hosts:  []string{"api.twitch.tv"},
		Scope:  ScopeCredential,
		Reset:  ResetFull,
	},
	{
		Vendor: "VK", // refuses under 200
		Source: "https://dev.vk.com/ru/reference/errors",
		Hosts:  []string{"api.vk.com", "api.vk.ru"},
		Body: []Field{
			{Name: "error.error_code", Tells: FactRefusal, Words: map[string]Scope{
				"6":  ScopeCredential, // too many calls in a second
				"9":  ScopeRoute,      // too much of the same
				"29": ScopeRoute,      // of this method, in a day
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "WHOOP",
		Source: "https://developer.whoop.com/docs/developing/rate-limiting",
		Hosts:  []string{"api.prod.whoop.com"},
		Reset:  ResetWindow,
	},
	{
		Vendor: "Wikimedia", // refuses under 200
		Source: "https://www.mediawiki.org/wiki/Manual:Maxlag_parameter https://www.mediawiki.org/wiki/API:Errors_and_warnings",
		Hosts: []string{"*.wikipedia.org", "*.wikidata.org", "*.wikimedia.org", "*.mediawiki.org", "*.wiktionary.org",
			"*.wikibooks.org", "*.wikisource.org", "*.wikiquote.org", "*.wikiversity.org", "*.wikivoyage.org", "*.wikinews.org"},
		Fields: []Field{
			{Name: "Mediawiki-Api-Error", Tells: FactRefusal, Words: map[string]Scope{
				"maxlag":      ScopeLane, // a database lags
				"readonly":    ScopeLane,
				"ratelimited": ScopeCredential,
			}},
			{Name: "X-Database-Lag", Tells: FactRefusal, Words: map[string]Scope{"*": ScopeLane}}, // by itself, of what is no API
		},
	},
	{
		Vendor: "Yelp Fusion",
		Source: "https://docs.developer.yelp.com/docs/fusion-rate-limiting",
		Hosts:  []string{"api.yelp.com"},
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "Ratelimit-Dailylimit", Tells: FactLimit, Window: day},
			{Name: "Ratelimit-Resettime", Tells: FactReset},
		},
	},
	{
		Vendor: "Foursquare", // refuses under 403
		Source: "https://docs.foursquare.com/developer/reference/v2-rate-limits",
		Hosts:  []string{"api.foursquare.com"},
		Reset:  ResetWindow,
		Body: []Field{
			{Name: "meta.errorType", Tells: FactRefusal, Words: map[string]Scope{
				"rate_limit_exceeded": ScopeUnknown,
				"quota_exceeded":      ScopeLane,
			}},
		},
	},
	{
		Vendor: "Last.fm",
		Source: "https://www.last.fm/api/errorcodes",
		Hosts:  []string{"ws.audioscrobbler.com"},
		Body: []Field{
			{Name: "error", Tells: FactRefusal, Words: map[string]Scope{"29": ScopeGlobal}}, // this address
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Lark", // Feishu: 400 before it was 429
		Source: "https://open.larksuite.com/document/server-docs/api-call-guide/frequency-control",
		Hosts:  []string{"open.larksuite.com", "open.feishu.cn"},
		Scope:  ScopeRoute,
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Ogw-Ratelimit-Limit", Tells: FactLimit},
			{Name: "X-Ogw-Ratelimit-Reset", Tells: FactReset},
		},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"99991400": ScopeUnknown}},
		},
	},
	{
		Vendor: "SEC EDGAR", // refuses under 403, on a page for people
		Source: "https://www.sec.gov/about/webmaster-frequently-asked-questions#developers",
		Hosts:  []string{"www.sec.gov", "data.sec.gov", "efts.sec.gov"},
		Scope:  ScopeGlobal,
		Body: []Field{
			{Name: "", Tells: FactRefusal, Words: map[string]Scope{"*Request Rate Threshold Exceeded*": ScopeGlobal}, Statuses: []int{403}},
		},
	},
	{
		Vendor: "TikTok", // the interface for business refuses under 200
		Source: "https://business-api.tiktok.com/portal/docs https://developers.tiktok.com/doc/tiktok-api-v2-rate-limit",
		Hosts:  []string{"business-api.tiktok.com", "open.tiktokapis.com"},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"40100": ScopeUnknown}},
			{Name: "error.code", Tells: FactRefusal, Words: map[string]Scope{"rate_limit_exceeded": ScopeRoute}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "WeChat", // refuses under 200
		Source: "https://developers.weixin.qq.com/doc/offiaccount/en/Getting_Started/Global_Return_Code.html",
		Hosts:  []string{"api.weixin.qq.com", "qyapi.weixin.qq.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "errcode", Tells: FactRefusal, Words: map[string]Scope{"45009": ScopeUnknown, "45011": ScopeUnknown}},
		},
		BodyOfSuccess: true,
	},
}
