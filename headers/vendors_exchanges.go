package headers

import "time"

// exchangeVendors are markets, and those who sell what happens on them.
var exchangeVendors = []Dialect{
	{
		Vendor: "Alpha Vantage", // refuses under 200, in a note
		Source: "https://www.alphavantage.co/support/",
		Hosts:  []string{"www.alphavantage.co"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "Note", Tells: FactRefusal, Words: map[string]Scope{"*call frequency*": ScopeUnknown}},
			{Name: "Information", Tells: FactRefusal, Words: map[string]Scope{
				"*rate limit*":        ScopeUnknown,
				"*requests per day*":  ScopeUnknown,
				"*request per second": ScopeUnknown,
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor:       "Binance", // 403: its firewall's limit; 418: this address is banned for going on after 429
		Source:       "https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits https://developers.binance.com/docs/derivatives/portfolio-margin/general-info",
		Hosts:        []string{"*.binance.com", "*.binance.us", "*.binance.vision"},
		Refuses:      []int{403, 418},
		NotProcessed: []int{418},
		Scope:        ScopeGlobal,
		Fields: []Field{
			{Name: "X-Mbx-Used-Weight", Tells: FactUsed, Quota: "used-weight", Unit: "weight"},
			{Name: "X-Mbx-Used-Weight-1s", Tells: FactUsed, Quota: "used-weight-1s", Unit: "weight", Window: time.Second},
			{Name: "X-Mbx-Used-Weight-1m", Tells: FactUsed, Quota: "used-weight-1m", Unit: "weight", Window: time.Minute},
			{Name: "X-Mbx-Used-Weight-1h", Tells: FactUsed, Quota: "used-weight-1h", Unit: "weight", Window: time.Hour},
			{Name: "X-Mbx-Used-Weight-1d", Tells: FactUsed, Quota: "used-weight-1d", Unit: "weight", Window: day},
			{Name: "X-Mbx-Order-Count-1s", Tells: FactUsed, Quota: "order-count-1s", Unit: "orders", Window: time.Second},
			{Name: "X-Mbx-Order-Count-10s", Tells: FactUsed, Quota: "order-count-10s", Unit: "orders", Window: 10 * time.Second},
			{Name: "X-Mbx-Order-Count-1m", Tells: FactUsed, Quota: "order-count-1m", Unit: "orders", Window: time.Minute},
			{Name: "X-Mbx-Order-Count-1h", Tells: FactUsed, Quota: "order-count-1h", Unit: "orders", Window: time.Hour},
			{Name: "X-Mbx-Order-Count-1d", Tells: FactUsed, Quota: "order-count-1d", Unit: "orders", Window: day},
			{Name: "X-Sapi-Used-Ip-Weight-1m", Tells: FactUsed, Quota: "used-ip-weight-1m", Unit: "weight", Window: time.Minute},
			{Name: "X-Sapi-Used-Uid-Weight-1m", Tells: FactUsed, Quota: "used-uid-weight-1m", Unit: "weight", Window: time.Minute},
		},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{
				"-1003": ScopeGlobal,     // too many requests of this address
				"-1008": ScopeLane,       // the servers have too much to do
				"-1015": ScopeCredential, // too many orders of this account
			}},
			// Any other 503 says that what became of the request is not known.
			{Name: "msg", Tells: FactRefusal, Words: map[string]Scope{"Service Unavailable.": ScopeLane}, NotProcessed: true, Statuses: []int{503}},
			{Name: "msg", Tells: FactRetryAfter, After: "banned until "}, // milliseconds of the epoch
		},
	},
	{
		Vendor: "BitMEX",
		Source: "https://www.bitmex.com/app/restAPI#Limits https://blog.bitmex.com/site_announcement/update-to-system-overload-policy/",
		Hosts:  []string{"www.bitmex.com", "testnet.bitmex.com"},
		Reset:  ResetFull,
		Fields: []Field{
			{Name: "X-Ratelimit-Remaining-1s", Tells: FactRemaining, Quota: "1s", Window: time.Second},
		},
		Body: []Field{
			// Rejected at once, for the queue before the engine is full.
			{Name: "error.message", Tells: FactRefusal, Words: map[string]Scope{"*system is currently overloaded*": ScopeLane}, NotProcessed: true, Statuses: []int{503}},
		},
	},
	{
		Vendor: "Bybit", // refuses under 200; an address is refused under 403
		Source: "https://bybit-exchange.github.io/docs/v5/rate-limit https://bybit-exchange.github.io/docs/v5/error",
		Hosts:  []string{"*.bybit.com", "*.bytick.com", "*.bybit.nl", "*.bybit.kz", "*.bybit.eu"},
		Fields: []Field{
			{Name: "X-Bapi-Limit", Tells: FactLimit, Quota: "bapi"},
			{Name: "X-Bapi-Limit-Status", Tells: FactRemaining, Quota: "bapi"},
			{Name: "X-Bapi-Limit-Reset-Timestamp", Tells: FactReset, Quota: "bapi"}, // milliseconds of the epoch
		},
		Body: []Field{
			{Name: "retCode", Tells: FactRefusal, Words: bybitRefusals},
			{Name: "ret_code", Tells: FactRefusal, Words: bybitRefusals}, // up to v2, whose quotas stand beside it
			{Name: "rate_limit", Tells: FactLimit, Quota: "bapi"},
			{Name: "rate_limit_status", Tells: FactRemaining, Quota: "bapi"},
			{Name: "rate_limit_reset_ms", Tells: FactReset, Quota: "bapi"},
			{Name: "", Tells: FactRefusal, Words: map[string]Scope{"*access too frequent*": ScopeGlobal}, Statuses: []int{403}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Coinbase",
		Source: "https://docs.cdp.coinbase.com/coinbase-business/api-architecture/rate-limiting",
		Hosts:  []string{"api.coinbase.com", "*.coinbase.com"},
		Body: []Field{
			{Name: "errors.*.id", Tells: FactRefusal, Words: map[string]Scope{"rate_limit_exceeded": ScopeCredential}},
		},
	},
	{
		Vendor: "Etherscan", // refuses under 200, in words
		Source: "https://docs.etherscan.io/resources/common-error-messages",
		Hosts:  []string{"api.etherscan.io", "*.etherscan.io"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "result", Tells: FactRefusal, Words: map[string]Scope{
				"Max*rate limit reached*":            ScopeUnknown,
				"Too many invalid api key attempts*": ScopeGlobal, // this address, for 30 seconds
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Gate.io", // the stamp is that of the response while something remains
		Source: "https://www.gate.com/docs/developers/apiv4/#rate-limit",
		Hosts:  []string{"api.gateio.ws", "*.gateio.ws"},
		Scope:  ScopeRoute,
		Fields: []Field{
			{Name: "X-Gate-Ratelimit-Limit", Tells: FactLimit},
			{Name: "X-Gate-Ratelimit-Requests-Remain", Tells: FactRemaining},
			{Name: "X-Gate-Ratelimit-Reset-Timestamp", Tells: FactReset},
		},
		Body: []Field{
			{Name: "label", Tells: FactRefusal, Words: map[string]Scope{"TOO_MANY_REQUESTS": ScopeUnknown}},
		},
	},
	{
		Vendor: "Kraken", // refuses under 200
		Source: "https://docs.kraken.com/api/docs/guides/spot-errors https://docs.kraken.com/api/docs/guides/futures-rate-limits",
		Hosts:  []string{"api.kraken.com", "futures.kraken.com"},
		Body: []Field{
			{Name: "error.*", Tells: FactRefusal, Words: map[string]Scope{
				"EAPI:Rate limit exceeded":   ScopeCredential,
				"EOrder:*ate limit exceeded": ScopeRoute,
				"EGeneral:Too many requests": ScopeGlobal, // of this address
				"EGeneral:Temporary lockout": ScopeCredential,
				"EService:*Throttled*":       ScopeUnknown, // too many at a time
			}},
			{Name: "error.*", Tells: FactRetryAfter, After: "Throttled:"}, // seconds of the epoch
			{Name: "error", Tells: FactRefusal, Words: map[string]Scope{"apiLimitExceeded": ScopeCredential}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "KuCoin", // the reset is a delay in milliseconds
		Source: "https://www.kucoin.com/docs-new/rate-limit https://www.kucoin.com/docs/basic-info/request-rate-limit/rest-api",
		Hosts:  []string{"*.kucoin.com", "*.kucoin.eu"},
		Fields: []Field{
			{Name: "Gw-Ratelimit-Limit", Tells: FactLimit, Quota: "gw"},
			{Name: "Gw-Ratelimit-Remaining", Tells: FactRemaining, Quota: "gw"},
			{Name: "Gw-Ratelimit-Reset", Tells: FactReset, Quota: "gw", Per: time.Millisecond},
		},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{
				"429000": ScopeUnknown, // the quota, or the servers have too much to do
				"200002": ScopeRoute,   // before the pools, for ten seconds
				"1015":   ScopeGlobal,  // of this address, for half a minute
			}},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "OKX", // 50011 came under 200 as well
		Source: "https://www.okx.com/docs-v5/en/#overview-rate-limits https://www.okx.com/docs-v5/en/#error-code",
		Hosts:  []string{"www.okx.com", "*.okx.com"},
		Body: []Field{
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{
				"50011": ScopeRoute,
				"50013": ScopeLane, // the servers have too much to do
				"50061": ScopeCredential,
			}},
		},
		BodyOfSuccess: true,
	},
}

var bybitRefusals = map[string]Scope{
	"10006": ScopeRoute,  // this account's calls of this method
	"10018": ScopeGlobal, // this address
	"10429": ScopeLane,   // the servers protect themselves
}
