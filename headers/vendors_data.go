package headers

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
		Vendor: "Baidu Maps", // refuses under 200
		Source: "https://lbsyun.baidu.com/index.php?title=webapi/appendix",
		Hosts:  []string{"api.map.baidu.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "status", Tells: FactRefusal, Words: map[string]Scope{
				"302": ScopeUnknown, // a day's quota
				"401": ScopeUnknown, // too many at a time
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
		Vendor: "ip-api.com", // names of its own
		Source: "https://ip-api.com/docs/unban",
		Hosts:  []string{"ip-api.com", "pro.ip-api.com"},
		Scope:  ScopeGlobal, // this address
		Fields: []Field{
			{Name: "X-Rl", Tells: FactRemaining},
			{Name: "X-Ttl", Tells: FactReset},
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
		Vendor: "Tencent Maps", // refuses under 200
		Source: "https://lbs.qq.com/service/webService/webServiceGuide/status",
		Hosts:  []string{"apis.map.qq.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "status", Tells: FactRefusal, Words: map[string]Scope{
				"120": ScopeUnknown, // calls in a second
				"121": ScopeUnknown, // a day's quota
			}},
		},
		BodyOfSuccess: true,
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
	{
		Vendor: "Weibo", // refuses under 403
		Source: "https://open.weibo.com/wiki/Error_code",
		Hosts:  []string{"api.weibo.com"},
		Body: []Field{
			{Name: "error_code", Tells: FactRefusal, Words: map[string]Scope{
				"10022": ScopeGlobal, // this address
				"10023": ScopeCredential,
				"10024": ScopeRoute,
			}},
		},
	},
	{
		Vendor: "Withings", // refuses under 200
		Source: "https://developer.withings.com/api-reference/#section/Response-status",
		Hosts:  []string{"wbsapi.withings.net"},
		Body: []Field{
			{Name: "status", Tells: FactRefusal, Words: map[string]Scope{"601": ScopeUnknown}},
		},
		BodyOfSuccess: true,
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
