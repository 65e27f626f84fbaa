package vendors

import (
	"net/http"
	"time"

	"github.com/weirgo/weir"
)

// HubSpot returns the preset of HubSpot's API, for an app in a Free or Starter account.
func HubSpot() Preset {
	const source = "https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines"
	return preset(Preset{
		Name:    "HubSpot",
		Keys:    "token (of an app in an account)",
		Repeats: "what was refused; searches and batches that read",
		Reads:   []string{"/search", "/batch/read"},
		key:     credential,
		Numbers: []Number{{
			// "(Any Hub) Free and Starter: 100 / app" under "Per 10 Seconds".
			Counts: "requests of an app", Most: 100, In: 10 * time.Second,
			Source: source, Read: "2026-11-25", Method: "documented", Note: "190 on Professional and Enterprise, 250 with the API Limit Increase; searches have less",
		}, {
			// "250,000 / account" under "Per Day"; "The daily limit resets at midnight based on your time zone setting."
			Counts: "requests of all apps of an account", Most: 250_000, In: 24 * time.Hour,
			Source: source, Read: "2026-11-25", Method: "documented", Note: "625,000 on Professional, 1,000,000 on Enterprise",
		}},
	})
}

// Salesforce returns the preset of Salesforce's REST API, for a Developer Edition.
func Salesforce() Preset {
	const source = "https://developer.salesforce.com/docs/platform/salesforce-app-limits-cheatsheet/guide/salesforce-app-limits-platform-api.html"
	return preset(Preset{
		Name:    "Salesforce",
		Keys:    "org (its host)",
		Repeats: "what was refused",
		Numbers: []Number{{
			// "Developer Edition and Trial orgs: 5", of "concurrent inbound requests with a duration of 20 seconds or longer".
			Counts: "requests in flight for 20 s or longer", Most: 5,
			Source: source, Read: "2026-11-25", Method: "documented", Note: "25 in production and sandboxes; shorter requests have no such limit, but count here",
		}, {
			// "Total API Request Allocations"; their table was not in the copy.
			Counts: "requests of all apps of an org in 24 hours", Source: source, Read: "2026-11-25", Method: "reported",
			Note: "Sforce-Limit-Info; by edition and licences",
		}},
	})
}

// Notion returns the preset of Notion's API.
func Notion() Preset {
	return preset(Preset{
		Name:    "Notion",
		Keys:    "connection (its token)",
		Repeats: "what was refused; queries and searches",
		Reads:   []string{"/query", "/v1/search"},
		key:     credential,
		Numbers: []Number{{
			// "Per connection: an average of three requests per second, with some bursts beyond the average allowed."
			Counts: "requests of a connection, on average", Most: 3, In: time.Second, Burst: 3,
			Source: "https://developers.notion.com/reference/request-limits", Read: "2026-11-25", Method: "documented",
			Note: "a newer text of the page has a budget per 60 s by plan, without numbers; a workspace has a limit, too",
		}},
	})
}

// airtableBase returns the base of a call: app and 14 characters, in data and
// metadata alike.
func airtableBase(req *http.Request) string {
	if id := between(req.URL.Path, "/app", "/"); id != "" {
		return "app" + id
	}
	return ""
}

// Airtable returns the preset of Airtable's Web API. A lane is that of a base.
func Airtable() Preset {
	const source = "https://support.airtable.com/docs/en/managing-api-call-limits-in-airtable"
	return preset(Preset{
		Name:    "Airtable",
		Keys:    "base, whatever the token",
		Repeats: "what was refused; listRecords",
		Reads:   []string{"/listRecords"},
		key:     with(weir.ByHost, airtableBase),
		Numbers: []Number{{
			// "Airtable enforces a rate limit of 5 requests per second (per base)".
			Counts: "requests to a base", Most: 5, In: time.Second,
			Source: source, Read: "2026-11-25", Method: "documented", Note: "after a refusal \"must wait 30 seconds\"; Free and Team plans have monthly limits",
		}, {
			// "a limit of 50 requests per second for all traffic using personal access tokens from a given user".
			Counts: "requests of a user to all bases", Most: 50, In: time.Second,
			Source: source, Read: "2026-11-25", Method: "documented", Note: "kept in each lane; eleven bases at full speed would exceed it together",
		}},
	})
}

// Okta returns the preset of Okta's API, for an Integrator Free plan.
func Okta() Preset {
	return preset(Preset{
		Name:    "Okta",
		Keys:    "org (its host); endpoints are learned within the lane",
		Repeats: "what was refused",
		Numbers: []Number{{
			// "Integrator Free plan: 35, Okta Customer Identity: 75, Okta Workforce Identity: 75", "including API requests".
			Counts: "requests in flight of an org", Most: 35,
			Source: "https://developer.okta.com/docs/reference/rl2-concurrency/", Read: "2026-11-25", Method: "documented", Note: "75 on paid plans, or more",
		}, {
			// "Refer to the Rate Limit Buckets table, part of the Rate Limit Dashboard".
			Counts: "requests a minute to a bucket of endpoints",
			Source: "https://developer.okta.com/docs/reference/rl2-limits/", Read: "2026-11-25", Method: "reported",
			Note: "X-Rate-Limit-Limit, -Remaining and -Reset; the numbers are those of an org",
		}},
	})
}
