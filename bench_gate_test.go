package weir_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/throttle"
)

// An answering is a base whose answers have a header.
type answering http.Header

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header(a), Body: harness.StubBody{}}, nil
}

var reporting = answering{"Ratelimit-Limit": {"200"}, "Ratelimit-Remaining": {"17"}, "Ratelimit-Reset": {"60"}}

// What the gate of a lane costs: one that only counts, and those that ask.
func BenchmarkGate(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.example.com/v1/things", nil)
	limits := []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}
	for _, bench := range []struct {
		name      string
		transport *weir.Transport
	}{
		{"counts", &weir.Transport{Base: harness.Stub{}, Limits: limits}},
		{"unlimited", &weir.Transport{Base: harness.Stub{}}},
		{"bounded", &weir.Transport{Base: harness.Stub{}, Limits: limits, InFlight: weir.InFlight{Max: 100}}},
		{"learned", &weir.Transport{Base: reporting, Limits: limits}},
		{"waits-for-reset", &weir.Transport{Base: reporting, Limits: limits, WaitForReset: true, Learn: weir.LearnOff}},
	} {
		bench.transport.Retry, bench.transport.UnguardedResends = backoff.None, true
		bench.transport.Logger = slog.New(slog.DiscardHandler)
		call := func(b *testing.B) {
			resp, err := bench.transport.RoundTrip(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b)
			}
		})
		b.Run(bench.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call(b)
				}
			})
		})
	}
}
