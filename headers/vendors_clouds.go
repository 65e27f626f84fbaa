package headers

import "time"

// cloudVendors are the dialects of clouds and hosters.
var cloudVendors = []Dialect{
	{
		Vendor: "Amazon SP-API", // the limit is a rate, fractions of a request per second
		Hosts:  []string{"sellingpartnerapi-na.amazon.com", "sellingpartnerapi-eu.amazon.com", "sellingpartnerapi-fe.amazon.com"},
		Fields: []Field{
			{Name: "X-Amzn-Ratelimit-Limit", Tells: FactLimit, Window: time.Second},
		},
	},
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
			{Name: "Error.Code", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true},
		},
	},
	{Vendor: "AWS API Gateway"},
	{
		Vendor: "Azure Compute",
		Fields: azureFields,
	},
	{Vendor: "Azure Cosmos DB", Hosts: []string{"*.documents.azure.com"}},
	{
		Vendor: "Azure Resource Graph",
		Fields: azureFields,
	},
	{
		Vendor: "Azure Resource Manager", // one host for Compute and Resource Graph too
		Hosts:  []string{"management.azure.com"},
		Fields: azureFields,
	},
	{Vendor: "Cloudflare API", Hosts: []string{"api.cloudflare.com"}},
	{Vendor: "DigitalOcean", Hosts: []string{"api.digitalocean.com"}},
	{Vendor: "Docker Hub", Hosts: []string{"registry-1.docker.io", "auth.docker.io", "hub.docker.com"}},
	{Vendor: "Fastly", Hosts: []string{"api.fastly.com"}},
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
	{Vendor: "Heroku", Hosts: []string{"api.heroku.com"}},
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
