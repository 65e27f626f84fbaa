package headers

import "time"

// gatewayVendors are what others put before their own interfaces. They are had by name.
var gatewayVendors = []Dialect{
	{
		Vendor: "didip/tollbooth",
		Source: "https://github.com/didip/tollbooth#features",
		Fields: []Field{
			{Name: "X-Rate-Limit-Duration", Tells: FactWindow},
		},
	},
	{
		Vendor: "Envoy", // the status of a refusal is configured
		Source: "https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/rate_limit_filter https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter#x-envoy-overloaded",
		Fields: []Field{
			{Name: "X-Envoy-Ratelimited", Tells: FactRefusal, Words: map[string]Scope{"true": ScopeUnknown}},
			// The proxy dropped the request, by its own account.
			{Name: "X-Envoy-Overloaded", Tells: FactRefusal, Words: map[string]Scope{"true": ScopeUnknown}, NotProcessed: true},
			{Name: "X-Envoy-Local-Overloaded", Tells: FactRefusal, Words: map[string]Scope{"true": ScopeUnknown}, NotProcessed: true},
		},
	},
	{Vendor: "express-rate-limit", Source: "https://express-rate-limit.mintlify.app/reference/configuration#standardheaders"},
	{Vendor: "Kong Gateway", Source: "https://developer.konghq.com/plugins/rate-limiting/", Reset: ResetWindow},
	{
		Vendor:          "Kubernetes", // client-go goes by the wait under 5xx too
		Source:          "https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#StatusReason",
		Hosts:           []string{"kubernetes.default.svc", "*.azmk8s.io", "*.eks.amazonaws.com"},
		RefusesWithWait: []int{500, 502, 504},
		Body: []Field{
			{Name: "details.retryAfterSeconds", Tells: FactRetryAfter},
			{Name: "reason", Tells: FactRefusal, Words: map[string]Scope{"TooManyRequests": ScopeUnknown, "ServerTimeout": ScopeUnknown}},
			// This pod's disruption budget; no quota was met.
			{Name: "details.causes.*.reason", Tells: FactScope, Words: map[string]Scope{"DisruptionBudget": ScopeRequest}},
		},
	},
	{
		Vendor: "Spring Cloud Gateway", // -1: it does not know, and lets everything pass
		Source: "https://docs.spring.io/spring-cloud-gateway/reference/spring-cloud-gateway-server-webflux/gatewayfilter-factories/requestratelimiter-factory.html",
		Fields: []Field{
			{Name: "X-Ratelimit-Burst-Capacity", Tells: FactLimit},
			{Name: "X-Ratelimit-Remaining", Tells: FactRemaining, NegativeUnknown: true},
		},
	},
	{
		Vendor: "standard", // the generic dialect by a name
		Source: "https://www.rfc-editor.org/rfc/rfc9110#name-retry-after https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/",
	},
	{
		Vendor: "Apigee", // 500 before it was 429
		Source: "https://cloud.google.com/apigee/docs/api-platform/troubleshoot/policies/runtime/quota-runtime-errors https://cloud.google.com/apigee/docs/api-platform/reference/policies/spike-arrest-policy",
		Hosts:  []string{"*.apigee.net"},
		Body: []Field{
			{Name: "fault.detail.errorcode", Tells: FactRefusal, Words: map[string]Scope{
				"policies.ratelimit.QuotaViolation":       ScopeUnknown,
				"policies.ratelimit.SpikeArrestViolation": ScopeUnknown,
			}},
		},
	},
	{
		Vendor: "Azure API Management", // a rate refuses under 429, a quota under 403
		Source: "https://learn.microsoft.com/en-us/azure/api-management/quota-policy https://learn.microsoft.com/en-us/azure/api-management/rate-limit-policy",
		Hosts:  []string{"*.azure-api.net"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "message", Tells: FactRefusal, Words: map[string]Scope{"Out of *quota*": ScopeUnknown}, Statuses: []int{403}},
			{Name: "message", Tells: FactRetryAfter, After: "Try again in "},
			{Name: "message", Tells: FactRetryAfter, After: "replenished in "},
		},
	},
	{
		Vendor: "Mashery", // refuses under 403
		Source: "https://developer.mashery.com/docs/read/mashery_api/20_reporting/error_codes https://developer.mashery.com/blog/read/Did_you_know_Mashery_API_responses_contain_quota_limit_information",
		Fields: []Field{
			{Name: "X-Mashery-Error-Code", Tells: FactRefusal, Words: masheryRefusals},
			{Name: "X-Error-Detail-Header", Tells: FactRefusal, Words: map[string]Scope{
				"Account Over Queries Per Second Limit": ScopeCredential,
				"Account Over Rate Limit":               ScopeCredential,
				"Rate Limit Exceeded":                   ScopeLane,
			}},
			{Name: "X-Packagekey-Qps-Allotted", Tells: FactLimit, Quota: "qps", Window: time.Second},
			{Name: "X-Packagekey-Qps-Current", Tells: FactUsed, Quota: "qps"},
			{Name: "X-Packagekey-Quota-Allotted", Tells: FactLimit, Quota: "quota"},
			{Name: "X-Packagekey-Quota-Current", Tells: FactUsed, Quota: "quota"},
		},
	},
	{Vendor: "RapidAPI", Source: "https://docs.rapidapi.com/docs/response-headers", Hosts: []string{"*.p.rapidapi.com"}, Scope: ScopeCredential, Reset: ResetWindow},
	{
		Vendor: "Traefik",
		Source: "https://doc.traefik.io/traefik/middlewares/http/ratelimit/",
		Fields: []Field{
			{Name: "X-Retry-In", Tells: FactRetryAfter}, // 545ms
		},
	},
	{
		Vendor: "Tyk", // a rate refuses under 429, a quota under 403
		Source: "https://tyk.io/docs/api-management/request-quotas/",
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "error", Tells: FactRefusal, Words: map[string]Scope{"Quota exceeded": ScopeUnknown, "Rate limit exceeded": ScopeUnknown}},
		},
	},
}

var masheryRefusals = map[string]Scope{
	"ERR_403_DEVELOPER_OVER_QPS":  ScopeCredential,
	"ERR_403_DEVELOPER_OVER_RATE": ScopeCredential,
}
