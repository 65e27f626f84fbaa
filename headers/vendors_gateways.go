package headers

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
}
