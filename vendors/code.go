package vendors

import (
	"net/http"
	"strings"
	"time"

	"github.com/weirgo/weir"
)

const (
	githubREST    = "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api"
	githubGraphQL = "https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api"
)

// githubPoints are the points of the secondary limit: "Most REST API GET, HEAD, and OPTIONS
// requests: 1", "POST, PATCH, PUT, or DELETE requests: 5".
func githubPoints(req *http.Request) int {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return 1
	}
	return 5
}

// githubContent counts the requests that may generate content.
func githubContent(req *http.Request) int {
	switch req.Method {
	case http.MethodPost, http.MethodPatch, http.MethodPut:
		return 1
	}
	return 0
}

// GitHub returns the preset of GitHub's REST API for a user's token.
func GitHub() Preset {
	return preset(Preset{
		Name:    "GitHub",
		Keys:    "token",
		Repeats: "what was refused",
		key:     credential,
		costs:   units{"points": githubPoints, "content": githubContent},
		Numbers: []Number{{
			// "All of these requests count towards your personal rate limit of 5,000 requests per hour."
			Counts: "requests of a user", Most: 5000, In: time.Hour,
			Source: githubREST, Read: "2026-11-25", Method: "documented",
			Note: "15,000 for apps of an Enterprise Cloud organization; 60 of an address without a token",
		}, {
			// "No more than 900 points per minute are allowed for REST API endpoints."
			Counts: "points of requests to one endpoint: 5 for a write, else 1", Most: 900, In: time.Minute, Unit: "points",
			Source: githubREST, Read: "2026-11-25", Method: "documented", Note: "kept for all endpoints together",
		}, {
			// "No more than 100 concurrent requests are allowed. This limit is shared across the REST API and GraphQL API."
			Counts: "requests in flight", Most: 100,
			Source: githubREST, Read: "2026-11-25", Method: "documented", Note: "halve it if GraphQL has a Transport of its own",
		}, {
			// "In general, no more than 80 content-generating requests per minute ..."
			Counts: "POST, PATCH and PUT, which may generate content", Most: 80, In: time.Minute, Unit: "content",
			Source: githubREST, Read: "2026-11-25", Method: "documented", Note: "some endpoints have lower limits",
		}, {
			// "... and no more than 500 content-generating requests per hour are allowed."
			Counts: "POST, PATCH and PUT, which may generate content", Most: 500, In: time.Hour, Unit: "content",
			Source: githubREST, Read: "2026-11-25", Method: "documented", Note: "the web interface counts, too",
		}},
	})
}

// GitHubGraphQL returns the preset of GitHub's GraphQL API. Every request is estimated at one
// point, the least: settle what rateLimit.cost says with weir.Settle(resp, "points", cost).
func GitHubGraphQL() Preset {
	return preset(Preset{
		Name:    "GitHub GraphQL",
		Keys:    "token",
		Repeats: "what was refused; a query, but it cannot be distinguished from a mutation",
		key:     credential,
		costs:   units{"secondary-points": func(*http.Request) int { return 5 }},
		Numbers: []Number{{
			// "For users: 5,000 points per hour per user." "The minimum point value of a call to the GraphQL API is 1."
			Counts: "points of a user's queries", Most: 5000, In: time.Hour, Unit: "points",
			Source: githubGraphQL, Read: "2026-11-25", Method: "documented",
			Note: "10,000 for apps of an Enterprise Cloud organization; 1,000 of a repository for GITHUB_TOKEN",
		}, {
			// "no more than 2,000 points per minute are allowed for the GraphQL API endpoint", "GraphQL requests
			// without mutations: 1", "with mutations: 5".
			Counts: "secondary points: 5 for a mutation, else 1", Most: 2000, In: time.Minute, Unit: "secondary-points",
			Source: githubGraphQL, Read: "2026-11-25", Method: "documented", Note: "each request is taken for a mutation",
		}, {
			// "No more than 100 concurrent requests are allowed. This limit is shared across the REST API and GraphQL API."
			Counts: "requests in flight", Most: 100,
			Source: githubGraphQL, Read: "2026-11-25", Method: "documented", Note: "halve it if REST has a Transport of its own",
		}},
	})
}

// GitLab returns the preset of the API of GitLab.com.
func GitLab() Preset {
	return preset(Preset{
		Name:    "GitLab",
		Keys:    "token, in any of its three header fields",
		Repeats: "what was refused",
		key:     weir.ByHeader("Authorization", "Private-Token", "Job-Token"),
		Numbers: []Number{{
			// "Authenticated API traffic for a user: 2,000 requests each minute", under "These limits are in effect on GitLab.com today".
			Counts: "API requests of a user, and all traffic from an address", Most: 2000, In: time.Minute,
			Source: "https://docs.gitlab.com/user/gitlab_com/rate_limits/", Read: "2026-11-25", Method: "documented",
			Note: "500 of an address without a token; many routes have less. Proposed, not in effect: 100 a minute and 5,000 an hour on Free",
		}},
	})
}

// dockerPulls counts what Docker Hub does: "Using GET emulates a real pull and counts towards
// the limit. Using HEAD won't."
func dockerPulls(req *http.Request) int {
	if (req.Method == "" || req.Method == http.MethodGet) && strings.Contains(req.URL.Path, "/manifests/") {
		return 1
	}
	return 0
}

// DockerHub returns the preset of pulls from Docker Hub without an account.
func DockerHub() Preset {
	return preset(Preset{
		Name:    "Docker Hub",
		Keys:    "host, because the pulls of an address count together",
		Repeats: "pulls",
		costs:   units{"pulls": dockerPulls},
		Numbers: []Number{{
			// "Unauthenticated Users: 100 per IPv4 address or IPv6 /64 subnet", under "Pull rate limit per 6 hours".
			Counts: "pulls of an address: GET of a manifest", Most: 100, In: 6 * time.Hour, Unit: "pulls",
			Source: "https://docs.docker.com/docker-hub/usage/pulls/", Read: "2026-11-25", Method: "documented",
			Note: "200 of a Personal account; paid accounts have no limit",
		}},
	})
}

// atlassianSite returns the site of a call to api.atlassian.com/ex/jira/{site}.
func atlassianSite(req *http.Request) string { return between(req.URL.Path, "/ex/jira/", "/") }

// Jira returns the preset of Jira Cloud. It has no number: the page that states them could
// be read in part only. A lane is that of a site.
func Jira() Preset {
	const source = "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/"
	return preset(Preset{
		Name:    "Jira",
		Keys:    "site: a host below atlassian.net, or the site in api.atlassian.com/ex/jira/{site}",
		Repeats: "searches",
		Reads:   []string{"/search", "/search/jql"},
		key:     with(weir.ByHost, atlassianSite),
		Numbers: []Number{{
			// "Restricts how many requests you can make per second to each API endpoint"; the numbers were not in the copy.
			Counts: "requests to an endpoint of a site, by method",
			Source: source, Read: "2026-11-25", Method: "unverified", Note: "a refusal names its limit in Ratelimit-Reason",
		}, {
			// "Each request starts with a base cost of 1 point, and additional points are added for each object";
			// "API token-based traffic is not affected by this change".
			Counts: "points an hour of an app", Source: source, Read: "2026-11-25", Method: "unverified",
			Note: "not for API tokens",
		}},
	})
}
