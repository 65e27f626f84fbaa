package headers

import "time"

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
