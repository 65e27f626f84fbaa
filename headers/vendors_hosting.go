package headers

// hostingVendors are more of those that lend machines, storage and maps.
var hostingVendors = []Dialect{
	{
		Vendor: "Akamai", // the end of the wait stands in a sentence
		Source: "https://techdocs.akamai.com/mtls-origin-keystore/reference/429",
		Hosts:  []string{"*.akamaiapis.net"},
		Body: []Field{
			{Name: "", Tells: FactRetryAfter, After: "try after "},
			{Name: "type", Tells: FactScope, Words: map[string]Scope{"global-rate-limit-exceeded": ScopeGlobal}},
		},
	},
	{
		Vendor:   "Azure DevOps", // whoever has used it up is slowed down first; Retry-After comes under 200
		Source:   "https://learn.microsoft.com/en-us/azure/devops/integrate/concepts/rate-limits",
		Hosts:    []string{"dev.azure.com", "*.dev.azure.com", "*.visualstudio.com"},
		Scope:    ScopeCredential,
		Reset:    ResetFull,
		Advisory: true,
	},
	{
		Vendor: "Azure Storage", // a partition at its limit: 503, or 500 for one that came too late
		Source: "https://learn.microsoft.com/en-us/azure/storage/common/scalability-targets-resource-provider https://learn.microsoft.com/en-us/rest/api/storageservices/common-rest-api-error-codes",
		Hosts: []string{"*.blob.core.windows.net", "*.dfs.core.windows.net", "*.queue.core.windows.net",
			"*.table.core.windows.net", "*.file.core.windows.net"},
		Scope: ScopeRoute,
		Fields: []Field{
			{Name: "X-Ms-Error-Code", Tells: FactRefusal, Words: azureStorageRefusals},
		},
		Body: []Field{
			{Name: "Error.Code", Tells: FactRefusal, Words: azureStorageRefusals},
			{Name: "error.code", Tells: FactRefusal, Words: azureStorageRefusals},
			{Name: "odata.error.code", Tells: FactRefusal, Words: azureStorageRefusals},
		},
	},
	{
		Vendor: "Backblaze B2", // its own interface refuses under 429, that of S3 under 503
		Source: "https://www.backblaze.com/docs/cloud-storage-rate-limits",
		Hosts:  []string{"*.backblazeb2.com", "*.backblaze.com"},
		Body: []Field{
			{Name: "Error.Code", Tells: FactRefusal, Words: map[string]Scope{"SlowDown": ScopeUnknown}},
			{Name: "code", Tells: FactRefusal, Words: map[string]Scope{"too_many_requests": ScopeUnknown}},
		},
	},
	{
		Vendor: "Dataverse", // five minutes, for each user and server
		Source: "https://learn.microsoft.com/en-us/power-apps/developer/data-platform/api-limits",
		Hosts:  []string{"*.dynamics.com"},
		Scope:  ScopeCredential,
		Fields: []Field{
			{Name: "X-Ms-Ratelimit-Burst-Remaining-Xrm-Requests", Tells: FactRemaining, Quota: "burst-xrm-requests"},
			{Name: "X-Ms-Ratelimit-Time-Remaining-Xrm-Requests"}, // seconds of work, with commas in the number
		},
	},
	{
		Vendor: "Google Maps", // the older services refuse under 200
		Source: "https://developers.google.com/maps/documentation/geocoding/requests-geocoding#StatusCodes https://developers.google.com/maps/documentation/directions/get-directions#StatusCodes",
		Hosts:  []string{"maps.googleapis.com"},
		Scope:  ScopeCredential,
		Body: []Field{
			{Name: "status", Tells: FactRefusal, Words: googleMapsRefusals},
			{Name: "*.status", Tells: FactRefusal, Words: googleMapsRefusals}, // <GeocodeResponse><status>
			{Name: "error.status", Tells: FactRefusal, Words: map[string]Scope{"RESOURCE_EXHAUSTED": ScopeUnknown}},
			{Name: "error.details.*.retryDelay", Tells: FactRetryAfter},
		},
		BodyOfSuccess: true,
	},
	{
		Vendor: "Replicate", // the wait stands in a sentence of Django REST framework
		Source: "https://replicate.com/docs/topics/predictions/rate-limits https://www.django-rest-framework.org/api-guide/throttling/",
		Hosts:  []string{"api.replicate.com"},
		Body: []Field{
			{Name: "retry_after", Tells: FactRetryAfter},
			{Name: "detail", Tells: FactRetryAfter, After: "Expected available in "},
			{Name: "detail", Tells: FactRetryAfter, After: "resets in ~"},
		},
	},
	{Vendor: "Webflow", Source: "https://developers.webflow.com/data/reference/rate-limits", Hosts: []string{"api.webflow.com"}, Scope: ScopeCredential},
	{
		Vendor: "Alibaba Cloud", // JSON or XML, 400 or 503; storage has words of its own
		Source: "https://www.alibabacloud.com/help/en/ecs/developer-reference/api-throttling https://www.alibabacloud.com/help/en/oss/support/http-503",
		Hosts:  []string{"*.aliyuncs.com"},
		Body: []Field{
			{Name: "Code", Tells: FactRefusal, Words: alibabaRefusals},
			{Name: "Error.Code", Tells: FactRefusal, Words: alibabaRefusals},
		},
	},
	{
		Vendor: "Apple Push Notifications",
		Source: "https://developer.apple.com/documentation/usernotifications/handling-notification-responses-from-apns",
		Hosts:  []string{"api.push.apple.com", "api.sandbox.push.apple.com"},
		Body: []Field{
			{Name: "reason", Tells: FactScope, Words: map[string]Scope{
				"TooManyRequests":             ScopeRequest, // to this one device
				"TooManyProviderTokenUpdates": ScopeCredential,
			}},
			{Name: "reason", Tells: FactRefusal, Words: map[string]Scope{"ServiceUnavailable": ScopeLane}, Statuses: []int{503}},
		},
	},
	{
		Vendor:  "Cloudinary", // 420: a number of its own
		Source:  "https://cloudinary.com/documentation/admin_api#usage_limits",
		Hosts:   []string{"api.cloudinary.com", "api-eu.cloudinary.com", "api-ap.cloudinary.com"},
		Refuses: []int{420},
		Scope:   ScopeLane,
		Reset:   ResetWindow,
		Fields: []Field{
			{Name: "X-Featureratelimit-Limit", Tells: FactLimit},
			{Name: "X-Featureratelimit-Remaining", Tells: FactRemaining},
			{Name: "X-Featureratelimit-Reset", Tells: FactReset},
		},
	},
	{
		Vendor: "Databricks",
		Source: "https://docs.databricks.com/aws/en/resources/limits",
		Hosts:  []string{"*.cloud.databricks.com", "*.azuredatabricks.net", "*.gcp.databricks.com"},
		Body: []Field{
			{Name: "error_code", Tells: FactRefusal, Words: map[string]Scope{"REQUEST_LIMIT_EXCEEDED": ScopeUnknown, "RESOURCE_EXHAUSTED": ScopeUnknown}},
		},
	},
	{
		Vendor: "GoDaddy",
		Source: "https://developer.godaddy.com/doc/endpoint/domains",
		Hosts:  []string{"api.godaddy.com", "api.ote-godaddy.com"},
		Scope:  ScopeRoute,
		Body: []Field{
			{Name: "retryAfterSec", Tells: FactRetryAfter},
		},
	},
	{Vendor: "Hetzner Cloud", Source: "https://docs.hetzner.cloud/reference/cloud#rate-limiting", Hosts: []string{"api.hetzner.cloud"}, Reset: ResetFull},
	{Vendor: "Linode", Source: "https://techdocs.akamai.com/linode-api/reference/rate-limits", Hosts: []string{"api.linode.com"}, Scope: ScopeCredential, Reset: ResetWindow},
	{
		Vendor: "Mapbox",
		Source: "https://docs.mapbox.com/api/overview/#rate-limits",
		Hosts:  []string{"api.mapbox.com"},
		Scope:  ScopeCredential,
		Reset:  ResetWindow,
		Fields: []Field{
			{Name: "X-Rate-Limit-Interval", Tells: FactWindow},
		},
	},
	{
		Vendor: "Tencent Cloud", // refuses under 200
		Source: "https://www.tencentcloud.com/document/api/213/30435",
		Hosts:  []string{"*.tencentcloudapi.com"},
		Body: []Field{
			{Name: "Response.Error.Code", Tells: FactRefusal, Words: map[string]Scope{
				"RequestLimitExceeded":                   ScopeRoute,
				"RequestLimitExceeded.IPLimitExceeded":   ScopeGlobal,
				"RequestLimitExceeded.*UinLimitExceeded": ScopeCredential,
			}},
		},
		BodyOfSuccess: true,
	},
}

var azureStorageRefusals = map[string]Scope{
	"ServerBusy":        ScopeUnknown,
	"OperationTimedOut": ScopeUnknown,
}

var googleMapsRefusals = map[string]Scope{
	"OVER_QUERY_LIMIT": ScopeUnknown,
	"OVER_DAILY_LIMIT": ScopeLane,
}

var alibabaRefusals = map[string]Scope{
	"Throttling":                       ScopeUnknown,
	"Throttling.*":                     ScopeUnknown,
	"Throttling.User":                  ScopeCredential,
	"Throttling.Api":                   ScopeRoute,
	"QpsLimitExceeded":                 ScopeUnknown,
	"DownloadTrafficRateLimitExceeded": ScopeUnknown,
	"UploadTrafficRateLimitExceeded":   ScopeUnknown,
}
