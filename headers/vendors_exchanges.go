package headers

import "time"

// exchangeVendors are the dialects of exchanges of money.
var exchangeVendors = []Dialect{
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
	{
		Vendor: "KuCoin", // the reset is a delay in milliseconds
		Hosts:  []string{"api.kucoin.com"},
		Fields: []Field{
			{Name: "Gw-Ratelimit-Limit", Tells: FactLimit, Quota: "gw"},
			{Name: "Gw-Ratelimit-Remaining", Tells: FactRemaining, Quota: "gw"},
			{Name: "Gw-Ratelimit-Reset", Tells: FactReset, Quota: "gw", Per: time.Millisecond},
		},
	},
}
