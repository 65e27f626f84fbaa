package headers

import "time"

// cloudVendors are the dialects of clouds and hosters.
var cloudVendors = []Dialect{
	{
		Vendor: "Amazon SP-API", // the limit is a rate, fractions of a request per second
		Source: "https://developer-docs.amazon.com/sp-api/docs/usage-plans-and-rate-limits",
		Hosts:  []string{"sellingpartnerapi-na.amazon.com", "sellingpartnerapi-eu.amazon.com", "sellingpartnerapi-fe.amazon.com"},
		Scope:  ScopeRoute, // each operation has a usage plan of its own
		Fields: []Field{
			{Name: "X-Amzn-Ratelimit-Limit", Tells: FactLimit, Window: time.Second},
		},
		Body: []Field{
			{Name: "errors.*.code", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"QuotaExceeded": ScopeUnknown}},
		},
	},
	{
		Vendor: "AWS",
		Source: "https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html",
		Hosts:  []string{"*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"},
		Fields: awsFields,
		Body:   awsBody,
	},
	{
		Vendor: "AWS API Gateway", // at hosts of AWS and at its customers'
		Source: "https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html",
		Fields: awsFields,
		Body:   awsBody,
	},
	{
		Vendor: "Azure Compute",
		Source: "https://learn.microsoft.com/en-us/troubleshoot/azure/virtual-machines/windows/troubleshooting-throttling-errors",
		Fields: azureFields,
		Body:   azureBody,
	},
	{
		Vendor: "Azure Cosmos DB", // a collection that is out of request units
		Source: "https://learn.microsoft.com/en-us/rest/api/cosmos-db/http-status-codes-for-cosmosdb",
		Hosts:  []string{"*.documents.azure.com"},
	},
	{
		Vendor: "Azure Resource Graph",
		Source: "https://learn.microsoft.com/en-us/azure/governance/resource-graph/concepts/guidance-for-throttled-requests",
		Fields: azureFields,
		Body:   azureBody,
	},
	{
		Vendor: "Azure Resource Manager", // one host for Compute and Resource Graph too
		Source: "https://learn.microsoft.com/en-us/azure/azure-resource-manager/management/request-limits-and-throttling",
		Hosts:  []string{"management.azure.com"},
		Fields: azureFields,
		Body:   azureBody,
	},
	{
		Vendor: "Cloudflare API", // GraphQL refuses under 200
		Source: "https://developers.cloudflare.com/fundamentals/api/reference/limits/ https://developers.cloudflare.com/analytics/graphql-api/errors",
		Hosts:  []string{"api.cloudflare.com"},
		Body: []Field{
			{Name: "errors.*.message", Tells: FactRefusal, Words: map[string]Scope{
				"rate limiter budget depleted*":  ScopeRoute,
				"quota exceeded, please repeat*": ScopeRoute,
				"limit reached, please try *":    ScopeRoute,
			}},
			{Name: "errors.*.message", After: "try again after ", Tells: FactRetryAfter},
			{Name: "errors.*.code", Tells: FactRefusal, Words: map[string]Scope{"971": ScopeUnknown}},
			{Name: "retry_after", Tells: FactRetryAfter},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "DigitalOcean", // an epoch under the draft's name
		Source: "https://docs.digitalocean.com/reference/api/reference/#section/Introduction/Rate-Limit",
		Hosts:  []string{"api.digitalocean.com"},
		Reset:  ResetNext, // when the oldest of the hour's requests expires
		Body: []Field{
			{Name: "id", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"too_many_requests": ScopeUnknown}},
		},
	},
	{
		Vendor: "Docker Hub", // the interface once told an instant in a field of its own
		Source: "https://docs.docker.com/docker-hub/usage/pulls/ https://docs.docker.com/reference/api/hub/latest/#tag/rate-limiting",
		Hosts:  []string{"registry-1.docker.io", "auth.docker.io", "hub.docker.com"},
		Body: []Field{
			{Name: "errors.*.code", Tells: FactRefusal, Words: map[string]Scope{"TOOMANYREQUESTS": ScopeUnknown}},
		},
	},
	{
		Vendor: "Fastly",
		Source: "https://www.fastly.com/documentation/reference/api/#rate-limiting",
		Hosts:  []string{"api.fastly.com"},
		Reset:  ResetWindow,
	},
	{
		Vendor: "Google APIs",
		Source: "https://google.aip.dev/193 https://developers.google.com/drive/api/guides/handle-errors https://cloud.google.com/bigquery/docs/error-messages https://cloud.google.com/storage/docs/xml-api/reference-status",
		Hosts:  []string{"*.googleapis.com"},
		Body: append([]Field{
			{Name: "Error.Code", Tells: FactRefusal, NotProcessed: true, Words: awsRefusals}, // Cloud Storage, by XML
		}, googleBody...),
	},
	{
		Vendor: "Heroku", // a pool that fills all the time
		Source: "https://devcenter.heroku.com/articles/platform-api-reference#rate-limits",
		Hosts:  []string{"api.heroku.com"},
		Body: []Field{
			{Name: "id", Tells: FactRefusal, NotProcessed: true, Words: map[string]Scope{"rate_limit": ScopeUnknown}},
		},
	},
}

// The ways of AWS: the name of an exception in the header or in JSON, a code in XML.
// What it denied because of throttling it has not done.
var (
	awsFields = []Field{
		{Name: "X-Amzn-Errortype", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true},
	}
	awsBody = []Field{
		{Name: "__type", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true},
		{Name: "code", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true},
		{Name: "Code", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true},
		{Name: "Error.Code", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true},                 // S3
		{Name: "ErrorResponse.Error.Code", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true},   // SQS, SNS, IAM
		{Name: "Response.Errors.Error.Code", Tells: FactRefusal, Words: awsRefusals, NotProcessed: true}, // EC2
		{Name: "Error.Message", Tells: FactRefusal, NotProcessed: true, Statuses: []int{503}, Words: map[string]Scope{
			"*educe your request rate*": ScopeUnknown, // S3's ServiceUnavailable, sometimes
		}},
		{Name: "retryAfterSeconds", Tells: FactRetryAfter},
	}
)

// awsRefusals are the exceptions by which AWS throttles, under 400 as well. What
// names the service may stand before, an address after.
var awsRefusals = map[string]Scope{
	"*Throttl*":                       ScopeUnknown, // Throttling, ThrottlingException, ThrottledException, RequestThrottled
	"*ProvisionedThroughputExceeded*": ScopeUnknown,
	"*RequestLimitExceeded*":          ScopeUnknown,
	"*RequestRateTooLarge*":           ScopeUnknown,
	"*BandwidthLimitExceeded*":        ScopeUnknown,
	"LimitExceededException*":         ScopeUnknown,
	"*#LimitExceededException*":       ScopeUnknown, // not ResourceNumberLimitExceededException
	"*TooManyRequests*":               ScopeUnknown,
	"*TransactionInProgress*":         ScopeRequest,
	"*SlowDown":                       ScopeUnknown,
	"*PriorRequestNotComplete*":       ScopeRequest,
}

// azureFields are of Azure Compute, a line for each policy, and of Resource Graph.
var azureFields = []Field{
	{Name: "X-Ms-Ratelimit-Remaining-Resource", Syntax: SyntaxNamed, Tells: FactRemaining},
	{Name: "X-Ms-User-Quota-Remaining", Tells: FactRemaining, Quota: "user-quota"},
	{Name: "X-Ms-User-Quota-Resets-After", Tells: FactReset, Quota: "user-quota"},
	{Name: "X-Ms-Error-Code", Tells: FactRefusal, Words: azureRefusals},
}

// azureBody are the codes of Azure's errors. The wait may stand in a sentence alone.
var azureBody = []Field{
	{Name: "error.code", Tells: FactRefusal, Words: azureRefusals},
	{Name: "error.message", After: "try again after ", Tells: FactRetryAfter, Statuses: []int{429, 503}},
	{Name: "error.message", After: "try after ", Tells: FactRetryAfter, Statuses: []int{429, 503}},
	// Something else is done to the resource: no quota was met.
	{Name: "error.code", Tells: FactScope, Words: map[string]Scope{"RetryableErrorDueToAnotherOperation": ScopeRequest}},
	{Name: "error.details.*.code", Tells: FactScope, Words: map[string]Scope{"RetryableErrorDueToAnotherOperation": ScopeRequest}},
}

var azureRefusals = map[string]Scope{
	"TooManyRequests":               ScopeUnknown,
	"ServerBusy":                    ScopeUnknown,
	"RateLimiting":                  ScopeUnknown,
	"SubscriptionRequestsThrottled": ScopeUnknown,
	"ResourceRequestsThrottled":     ScopeRoute,
	"ClientRequestsThrottled":       ScopeUnknown,
}
