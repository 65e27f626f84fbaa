package recipes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-github/v74/github"
	"github.com/openai/openai-go/v3"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/vendors"
	"github.com/weirgo/weir/weirtest"
)

// before returns a transport over a vendor, for a test in a bubble.
func before(t *testing.T, transport *weir.Transport, handler http.HandlerFunc) *weirtest.Vendor {
	t.Helper()
	vendor := weirtest.New(t)
	vendor.Handler, transport.Base = handler, aim{vendor.Transport()}
	t.Cleanup(func() { transport.Close() })
	return vendor
}

// A go-github client fails calls by itself while its quota is spent. The recipe leaves the wait to
// Weir.
func TestGitHubWaitsForItsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := vendors.GitHub().Transport()
		reset := time.Now().Add(time.Minute)
		var served atomic.Int32
		vendor := before(t, transport, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-RateLimit-Limit", "60")
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
			if time.Now().Before(reset) && served.Add(1) > 2 {
				w.WriteHeader(http.StatusForbidden)
			}
			fmt.Fprint(w, "{}")
		})
		client := newGitHub("token", transport)
		own := newGitHub("token", transport)
		own.DisableRateLimitCheck = false
		began := time.Now()
		for name, c := range map[string]*github.Client{"recipe": client, "its own check": own} {
			if _, _, err := c.Repositories.Get(t.Context(), "o", "r"); err != nil {
				t.Fatalf("%s: first call = %v", name, err)
			}
		}
		var limited *github.RateLimitError
		if _, _, err := own.Repositories.Get(t.Context(), "o", "r"); !errors.As(err, &limited) || time.Since(began) > time.Second {
			t.Errorf("its own check: second call = %v after %v, want its *RateLimitError at once", err, time.Since(began))
		}
		if _, _, err := client.Repositories.Get(t.Context(), "o", "r"); err != nil || time.Now().Before(reset) {
			t.Errorf("recipe: second call = %v after %v, want success after the reset", err, time.Since(began))
		}
		vendor.Check(t)
	})
}

// Tokens reserved and not used by a call are available to the next one.
func TestOpenAISettlesTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := vendors.OpenAI().Transport()
		transport.Limits = []throttle.Limit{throttle.TokenBucket(1000, time.Minute, 1000).Of("tokens")}
		before(t, transport, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"usage":{"total_tokens":400}}`)
		})
		client, began := newOpenAI("key", transport), time.Now()
		for range 2 {
			if _, err := complete(context.WithoutCancel(t.Context()), client, openai.ChatCompletionNewParams{Model: "any-model"}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 23*time.Second || took > 25*time.Second {
			t.Errorf("the second call left after %v, want 24s, in which 400 tokens are refilled", took)
		}
	})
}

// An uploaded file is read again from its beginning, however long it is.
func TestGitHubUploadsAFileAgain(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "asset"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 1 << 20
	if _, err := file.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		transport := vendors.GitHub().Transport()
		var lengths []int64
		before(t, transport, func(w http.ResponseWriter, req *http.Request) {
			n, _ := io.Copy(io.Discard, req.Body)
			if lengths = append(lengths, n); len(lengths) == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			fmt.Fprint(w, "{}")
		})
		_, _, err := newGitHub("token", transport).Repositories.UploadReleaseAsset(t.Context(), "o", "r", 1, &github.UploadOptions{Name: "asset"}, file)
		if err != nil || !slices.Equal(lengths, []int64{size, size}) {
			t.Errorf("upload = %v after bodies of %d bytes, want success after two of %d", err, lengths, size)
		}
	})
}
