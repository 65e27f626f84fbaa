package vendors

import (
	"time"

	"github.com/weirgo/weir"
)

// Stripe returns the preset of the Stripe API, for sandboxes and live mode.
func Stripe() Preset {
	const source = "https://docs.stripe.com/rate-limits"
	return preset(Preset{
		Name:    "Stripe",
		Keys:    "API key, connected account and context",
		Repeats: "what was refused; POST with an Idempotency-Key",
		key:     weir.ByHeader("Authorization", "Stripe-Account", "Stripe-Context"),
		Numbers: []Number{{
			// "API endpoints have a default limit of 25 requests per second." "Sandbox: 25 operations."
			Counts: "requests to one endpoint, and all of a sandbox", Most: 25, In: time.Second,
			Source: source, Read: "2026-11-25", Method: "documented",
			Note: "kept for all endpoints together: in live mode, drop this row if your calls are spread over endpoints. Files and Search: 20",
		}, {
			// "Live mode: 100 operations", per second.
			Counts: "requests of a live account", Most: 100, In: time.Second,
			Source: source, Read: "2026-11-25", Method: "documented", Note: "\"treat limits as maximums\"; there is a limit of concurrency, too, without a number",
		}},
	})
}

// Shopify returns the preset of Shopify's REST Admin API, on the Standard plan.
func Shopify() Preset {
	return preset(Preset{
		Name:    "Shopify",
		Keys:    "store (its host) and app (its access token)",
		Repeats: "what was refused",
		key:     weir.ByHeader("X-Shopify-Access-Token"),
		Numbers: []Number{{
			// "Standard limit: 2 requests/second"; of "X-Shopify-Shop-Api-Call-Limit: 32/40": "40 is the bucket size".
			Counts: "requests of an app to a store", Most: 2, In: time.Second, Burst: 40,
			Source: "https://shopify.dev/docs/api/admin-rest/usage/rate-limits", Read: "2026-11-25", Method: "documented",
			Note: "4 a second on Advanced, 20 on Plus; answers report the bucket's size",
		}},
	})
}

// ShopifyGraphQL returns the preset of Shopify's GraphQL Admin API, on the Standard plan. Every
// request is estimated at one point: settle extensions.cost.actualQueryCost with
// weir.Settle(resp, "points", cost), or set Cost.
func ShopifyGraphQL() Preset {
	return preset(Preset{
		Name:    "Shopify GraphQL",
		Keys:    "store (its host) and app (its access token)",
		Repeats: "what was refused; a query, but it cannot be distinguished from a mutation",
		key:     weir.ByHeader("X-Shopify-Access-Token"),
		costs:   units{},
		Numbers: []Number{{
			// "Standard: 100 points/second", "Limits are enforced with a leaky bucket". The bucket holds 1,000 at least:
			// "A single query to the API cannot exceed a cost of 1000."
			Counts: "points of an app's queries to a store", Most: 100, In: time.Second, Burst: 1000, Unit: "points",
			Source: "https://shopify.dev/docs/apps/build/apis/graphql-admin/rate-limits", Read: "2026-11-25", Method: "documented",
			Note: "200 a second on Advanced, 1,000 on Plus; answers report the bucket's size, which the page does not state",
		}},
	})
}
