package vendors

import (
	"net/http"

	"github.com/weirgo/weir"
)

// tokens estimates the tokens of a prompt from the length of the body, for limits in tokens that
// a program adds: about four bytes each in English. weir.Settle corrects it.
var tokens = units{"tokens": func(req *http.Request) int { return int(max(req.ContentLength, 0)/4) + 1 }}

// OpenAI returns the preset of the OpenAI API. It has no number: the limits are those of a
// model and a usage tier, and each answer reports them.
func OpenAI() Preset {
	return preset(Preset{
		Name:    "OpenAI",
		Keys:    "API key, organization and project",
		Repeats: "what was refused; a completion that failed is billed twice if it is repeated",
		key:     weir.ByHeader("Authorization", "OpenAI-Organization", "OpenAI-Project"),
		costs:   tokens,
		Numbers: []Number{{
			// "You can expect to see the following header fields: x-ratelimit-limit-requests, x-ratelimit-limit-tokens, ...";
			// "your rate limits are automatically increased in the usage tiers section"; there is no table of models.
			Counts: "requests and tokens of a project, by model and usage tier",
			Source: "https://developers.openai.com/api/docs/guides/rate-limits", Read: "2026-11-25", Method: "reported",
			Note: "add throttle.TokenBucket(...).Of(\"tokens\") for the tier of your account, and the answers bound it",
		}},
	})
}

// Anthropic returns the preset of the Claude API. It has no number: the limits are those of
// a model and a usage tier, and each answer reports them.
func Anthropic() Preset {
	return preset(Preset{
		Name:    "Anthropic",
		Keys:    "API key",
		Repeats: "what was refused, under 529 too; a message that failed is billed twice if it is repeated",
		key:     weir.ByHeader("X-Api-Key", "Authorization"),
		costs:   tokens,
		Numbers: []Number{{
			// "Limits are defined by usage tier", "at the organization level"; the page of AWS on the same
			// limits: "anthropic-ratelimit-requests-limit: Maximum requests per minute".
			Counts: "requests, input tokens and output tokens of an organization, by model and usage tier",
			Source: "https://platform.claude.com/docs/en/api/rate-limits.md", Read: "2026-11-25", Method: "reported",
			Note: "new organizations may start below the lowest standard tier",
		}},
	})
}

// geminiModel returns the model of a call to /v1beta/models/{model}:generateContent.
func geminiModel(req *http.Request) string { return between(req.URL.Path, "/models/", ":/") }

// Gemini returns the preset of the Gemini API. It has no number: the limits are those of a model
// and a usage tier, and Google shows them in AI Studio alone. A lane is that of a
// key and a model.
func Gemini() Preset {
	return preset(Preset{
		Name:    "Google Gemini",
		Keys:    "API key in X-Goog-Api-Key, and model; keys in the query share a lane",
		Repeats: "what was refused",
		key:     with(weir.ByHeader("X-Goog-Api-Key", "Authorization"), geminiModel),
		costs:   tokens,
		Numbers: []Number{{
			// "Rate limits are applied per project, not per API key", "Requests per day (RPD) quotas reset at
			// midnight Pacific time", "View your active rate limits in AI Studio".
			Counts: "requests a minute, input tokens a minute and requests a day of a project, by model",
			Source: "https://ai.google.dev/gemini-api/docs/rate-limits", Read: "2026-11-25", Method: "learned",
			Note: "a day's limit is throttle.FixedWindow(n, 24*time.Hour).Aligned(throttle.AlignDay(\"America/Los_Angeles\"))",
		}},
	})
}
