package headers

import "time"

// dataVendors are those who sell facts, prices, maps, music and translations, many of
// whom refuse under 200.
var dataVendors = []Dialect{
	{
		Vendor: "Amap", // refuses under 200
		Source: "https://lbs.amap.com/api/webservice/guide/tools/info",
		Hosts:  []string{"restapi.amap.com"},
		Body: []Field{
			{Name: "infocode", Tells: FactRefusal, Words: map[string]Scope{
				"10003": ScopeCredential, // a day's quota
				"10004": ScopeCredential, // too often
				"10014": ScopeCredential,
				"10019": ScopeCredential,
				"10020": ScopeCredential, // of this service
				"10021": ScopeCredential, // of this account
				"10044": ScopeCredential, // an account's day
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "APILayer", // refuses under 200
		Source: "https://fixer.io/documentation https://ipstack.com/documentation https://currencylayer.com/documentation",
		Hosts: []string{"data.fixer.io", "api.ipstack.com", "api.currencylayer.com", "api.exchangeratesapi.io",
			"api.weatherstack.com", "api.marketstack.com", "api.aviationstack.com", "apilayer.net"},
		Scope: ScopeCredential,
		Body: []Field{
			{Name: "error.type", Tells: FactRefusal, Words: apiLayerRefusals},
			{Name: "error.code", Tells: FactRefusal, Words: apiLayerRefusals},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Baidu AI", // refuses under 200
		Source: "https://cloud.baidu.com/ask/175 https://ai.baidu.com/forum/topic/show/955807",
		Hosts:  []string{"aip.baidubce.com"},
		Body: []Field{
			{Name: "error_code", Tells: FactRefusal, Words: map[string]Scope{
				"17": ScopeRoute, // a day's quota
				"18": ScopeRoute, // calls in a second
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor:  "DeepL", // 456: the month's characters are used up
		Source:  "https://developers.deepl.com/docs/best-practices/error-handling",
		Hosts:   []string{"api.deepl.com", "api-free.deepl.com"},
		Refuses: []int{456, 529},
		Scope:   ScopeCredential,
		Body: []Field{
			{Name: "message", Tells: FactPermanent, Statuses: []int{456}, Words: map[string]Scope{"*uota *xceeded*": ScopeUnknown}},
		},
	},
	{
		Vendor: "Deezer", // refuses under 200
		Source: "https://developers.deezer.com/api/errors",
		Hosts:  []string{"api.deezer.com"},
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: map[string]Scope{"4": ScopeGlobal}}, // 50 calls of an address in 5 seconds
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "DingTalk", // the older interface refuses under 200, the newer under 403
		Source: "https://developers.dingtalk.com/document/app/server-api-error-codes-1 https://developer.aliyun.com/ask/491711",
		Hosts:  []string{"oapi.dingtalk.com", "api.dingtalk.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "errcode", Tells: FactRefusal, Words: dingTalkRefusals},
			{Name: "sub_code", Tells: FactRefusal, Words: dingTalkRefusals},
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"Forbidden.AccessDenied.QpsLimitFor*": ScopeUnknown}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor:  "EVE Online", // 420: too many errors in a minute
		Source:  "https://developers.eveonline.com/docs/services/esi/best-practices/",
		Hosts:   []string{"esi.evetech.net"},
		Refuses: []int{420},
		Scope:   ScopeGlobal,
		Reset:   ResetWindow,
		Fields: []Field{
			{Name: "X-Esi-Error-Limit-Remain", Tells: FactRemaining, Quota: "error-limit", Unit: "errors"},
			{Name: "X-Esi-Error-Limit-Reset", Tells: FactReset, Quota: "error-limit", Unit: "errors"},
		},
	},
	{
		Vendor: "Infura", // the wait stands in the body alone; other errors have its code too
		Source: "https://docs.metamask.io/services/how-to/avoid-rate-limiting/",
		Hosts:  []string{"*.infura.io"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "error.data.rate.backoff_seconds", Tells: FactRetryAfter},
			{Name: "*.error.data.rate.backoff_seconds", Tells: FactRetryAfter},
		},
	},
	{
		Vendor: "Kakao", // refuses under 400
		Source: "https://developers.kakao.com/docs/latest/en/rest-api/error-code",
		Hosts:  []string{"kapi.kakao.com", "dapi.kakao.com"},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"-10": ScopeLane}},
		},
	},
	{
		Vendor: "Twelve Data", // refuses under 200
		Source: "https://twelvedata.com/docs#errors",
		Hosts:  []string{"api.twelvedata.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"429": ScopeUnknown}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor:         "Unsplash", // refuses under 403, with a quota and no time
		Source:         "https://unsplash.com/documentation#rate-limiting",
		Hosts:          []string{"api.unsplash.com"},
		RefusesByQuota: []int{403},
		Scope:          ScopeLane,
	},
}

var apiLayerRefusals = map[string]Scope{
	"rate_limit_reached":  ScopeUnknown,
	"usage_limit_reached": ScopeUnknown, // a month's quota
}

var dingTalkRefusals = map[string]Scope{
	"90002": ScopeUnknown,
	"90018": ScopeUnknown,
	"90019": ScopeUnknown,
}

// marketVendors are more markets.
var marketVendors = []Dialect{
	{
		Vendor: "Bitfinex", // refuses under 500 as well, by a list
		Source: "https://docs.bitfinex.com/docs/requirements-and-limitations",
		Hosts:  []string{"api.bitfinex.com", "api-pub.bitfinex.com"},
		Body: []Field{
			{Name: "*", Tells: FactRefusal, Words: map[string]Scope{"11010": ScopeGlobal, "ERR_RATE_LIMIT": ScopeGlobal}}, // this address
		},
	},
	{
		Vendor: "BitMart", // "remaining" is what was used, and "reset" the window
		Source: "https://developer-pro.bitmart.com/en/spot/#rate-limit",
		Hosts:  []string{"api-cloud.bitmart.com", "api-cloud-v2.bitmart.com"},
		Scope:  ScopeRoute,
		Fields: []Field{
			{Name: "X-Bm-Ratelimit-Limit", Tells: FactLimit},
			{Name: "X-Bm-Ratelimit-Remaining", Tells: FactUsed},
			{Name: "X-Bm-Ratelimit-Reset", Tells: FactWindow},
		},
	},
	{
		Vendor: "Deribit", // JSON-RPC: refuses under 400
		Source: "https://docs.deribit.com/articles/errors https://docs.deribit.com/articles/rate-limits",
		Hosts:  []string{"www.deribit.com", "test.deribit.com"},
		Body: []Field{
			{Name: "error.code", Tells: FactRefusal, Words: map[string]Scope{"10028": ScopeCredential}},
		},
	},
	{
		Vendor: "HTX", // instants in milliseconds; a window too
		Source: "https://huobiapi.github.io/docs/spot/v1/en/#rate-limiting-rule",
		Hosts:  []string{"*.huobi.pro", "*.htx.com", "api.hbdm.com"},
		Fields: []Field{
			{Name: "X-Hb-Ratelimit-Requests-Remain", Tells: FactRemaining},
			{Name: "X-Hb-Ratelimit-Requests-Expire", Tells: FactReset},
			{Name: "Ratelimit-Interval", Tells: FactWindow, Per: time.Millisecond},
		},
	},
	{
		Vendor: "MEXC", // futures refuse under 200
		Source: "https://mexcdevelop.github.io/apidocs/contract_v1_en/#error-code",
		Hosts:  []string{"contract.mexc.com", "api.mexc.com", "futures.mexc.com"},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"510": ScopeRoute}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor:  "Upbit", // 418: blocked for a while for going on after 429
		Source:  "https://docs.upbit.com/kr/docs/rate-limits",
		Hosts:   []string{"api.upbit.com", "*.api.upbit.com"},
		Refuses: []int{418},
	},
}
