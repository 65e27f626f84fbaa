package vendors

import (
	"net/http"
	"time"
)

const (
	slackLimits  = "https://docs.slack.dev/apis/web-api/rate-limits"
	slackMethods = "https://docs.slack.dev/reference/methods/"
)

// slackMethod returns the method of a call: "chat.postMessage".
func slackMethod(req *http.Request) string { return between(req.URL.Path, "/api/", "/") }

// Slack returns the preset of Slack's Web API. Each method of each token has a lane. Methods
// without a row are learned, because a refusal states its wait.
func Slack() Preset {
	return preset(Preset{
		Name:    "Slack",
		Keys:    "token (of an app in a workspace) and method",
		Repeats: "what was refused; methods that read",
		Reads:   []string{"/api/conversations.history", "/api/conversations.replies", "/api/conversations.list", "/api/users.list", "/api/users.info"},
		key:     with(credential, slackMethod),
		Numbers: []Number{{
			// "chat.postMessage generally allows posting one message per second per channel, while also maintaining a workspace-wide limit."
			Counts: "messages posted to a channel", Most: 1, In: time.Second, Route: "chat.postMessage",
			Source: slackLimits, Read: "2026-11-25", Method: "documented", Note: "kept for all channels together, because the channel is in the body",
		}, {
			// "Tier 3: 50+ per minute"; "For Marketplace and internal customer-built applications, this method has Tier 3 rate limits."
			Counts: "calls of conversations.history", Most: 50, In: time.Minute, Route: "conversations.history",
			Source: slackMethods + "conversations.history", Read: "2026-11-25", Method: "documented",
			Note: "1 a minute for apps that are sold outside the Marketplace",
		}, {
			// "Rate limits: Tier 3", and of that tier "50+ per minute".
			Counts: "calls of chat.update", Most: 50, In: time.Minute, Route: "chat.update",
			Source: "https://api.slack.com/methods/chat.update", Read: "2026-11-25", Method: "documented",
		}, {
			// "Web API Tier 1: 1+ per minute", "Tier 2: 20+", "Tier 3: 50+", "Tier 4: 100+", "per API method per workspace/team per app".
			Counts: "calls of any other method, by its tier",
			Source: slackLimits, Read: "2026-11-25", Method: "learned", Note: "tiers 1 to 4: 1, 20, 50 and 100 a minute at least; the page of a method names its tier",
		}},
	})
}

// Discord returns the preset of Discord's API for a bot. The limits of routes are read
// from the answers, because Discord asks not to write them down.
func Discord() Preset {
	const (
		source  = "https://docs.discord.com/developers/topics/rate-limits"
		support = "https://support-dev.discord.com/hc/en-us/articles/6223003921559-My-Bot-is-Being-Rate-Limited"
	)
	return preset(Preset{
		Name:    "Discord",
		Keys:    "bot (its token); routes and buckets are learned within the lane",
		Repeats: "what was refused",
		key:     credential,
		costs:   units{"invalid": func(*http.Request) int { return 0 }},
		Numbers: []Number{{
			// "Global Rate Limits. Limit: 50 requests per second across most endpoints. Scope: Applies to your entire application."
			Counts: "requests of a bot", Most: 50, In: time.Second,
			Source: support, Read: "2026-11-25", Method: "documented",
		}, {
			// "Limit: 10,000 invalid requests per 10 minutes", "errors (401, 403, or 429)"; the result is a "Temporary Cloudflare ban".
			Counts: "answers 401, 403 and 429 to an address", Most: 10_000, In: 10 * time.Minute, Unit: "invalid",
			Source: support, Read: "2026-11-25", Method: "documented",
			Note: "estimated at none: weir.Settle(resp, \"invalid\", 1) counts an answer",
		}, {
			// "rate limits should not be hard coded into your app. Instead, your app should parse response headers".
			Counts: "requests to a route, by channel, guild or webhook", Source: source, Read: "2026-11-25", Method: "reported", Note: "X-Ratelimit-Bucket groups routes",
		}},
	})
}

// Twilio returns the preset of Twilio's REST API. It has no number: the bound on requests in
// flight is not stated, and messages beyond a sender's rate are queued, not refused.
func Twilio() Preset {
	return preset(Preset{
		Name:    "Twilio",
		Keys:    "account (its credentials)",
		Repeats: "what was refused: \"Requests that receive 429 responses aren't processed and are safe to retry\"",
		key:     credential,
		Numbers: []Number{{
			// "your account exceeds allowed concurrency to Twilio's REST API".
			Counts: "requests in flight of an account",
			Source: "https://www.twilio.com/docs/api/errors/20429", Read: "2026-11-25", Method: "learned", Note: "no number is stated",
		}, {
			// "a US long code number can send one message segment per second", "Messages can only be queued for 10 hours".
			Counts: "message segments of a sender",
			Source: "https://www.twilio.com/docs/api/errors/21611", Read: "2026-11-25", Method: "documented",
			Note: "one a second for a US long code; Twilio queues what comes faster, for 10 hours, so it is not a limit of requests",
		}},
	})
}
