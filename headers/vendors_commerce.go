package headers

import "time"

// commerceVendors are the dialects of commerce.
var commerceVendors = []Dialect{
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
	{Vendor: "lemlist", Hosts: []string{"api.lemlist.com"}},
	{Vendor: "Mailchimp", Hosts: []string{"*.api.mailchimp.com"}},
	{Vendor: "Omnisend", Hosts: []string{"api.omnisend.com"}},
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
}
