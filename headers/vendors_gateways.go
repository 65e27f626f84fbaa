package headers

// gatewayVendors are the dialects of gateways, which stand at many hosts and are had by name.
var gatewayVendors = []Dialect{
	{
		Vendor: "didip/tollbooth",
		Fields: []Field{
			{Name: "X-Rate-Limit-Duration", Tells: FactWindow},
		},
	},
	{Vendor: "Envoy"},
	{Vendor: "express-rate-limit"},
	{Vendor: "Kong Gateway"},
	{Vendor: "Kubernetes"},
	{
		Vendor: "Spring Cloud Gateway",
		Fields: []Field{
			{Name: "X-Ratelimit-Burst-Capacity", Tells: FactLimit},
		},
	},
	{
		Vendor: "standard", // the generic dialect by a name
	},
}
