package recipes

import (
	"context"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/weirgo/weir"
)

// newOpenAI returns a client whose calls wait.
func newOpenAI(key string, transport http.RoundTripper) openai.Client {
	return openai.NewClient(option.WithAPIKey(key),
		option.WithHTTPClient(&http.Client{Transport: transport}), // +
		option.WithMaxRetries(0))                                  // +
}

// complete reserves the tokens that the answer may have, and settles what was used.
func complete(ctx context.Context, client openai.Client, params openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	ctx, spend := weir.Track(ctx)
	spend.Reserve("tokens", 1000)
	answer, err := client.Chat.Completions.New(ctx, params)
	if err == nil {
		err = spend.Settle("tokens", int(answer.Usage.TotalTokens))
	}
	return answer, err
}
