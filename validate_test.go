package weir_test

import (
	"bytes"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/throttle"
)

// Validate returns all faults at once, each with its field and value.
func TestValidateReportsAllFaults(t *testing.T) {
	spaced := throttle.Limit{Permits: 1, Per: time.Second, Unit: "my tokens", Name: "b"}
	bad := &weir.Transport{
		Limits:    []throttle.Limit{{Permits: -3, Per: time.Second}, {Permits: 1, Per: time.Second, Unit: "tokens", Name: "a"}, spaced},
		LimitsFor: func(string) []throttle.Limit { return []throttle.Limit{{Permits: 1}} },
		Shadow:    []throttle.Limit{{Permits: 1, Per: time.Second, Burst: -2}},
		Line:      weir.Line{MaxWait: -time.Second, MaxForecast: -2, MaxWaiting: -4, MaxWaitingBytes: -6, LowPriorityShare: math.NaN(), Overflow: 9}, MaxPause: -3, InFlight: weir.InFlight{Max: -5, Shared: 8, Reserve: 8}, MaxLanes: -7, Learn: 10,
		Retry: &backoff.Policy{Attempts: -1, MaxElapsed: -time.Minute, AttemptTimeout: -1, BudgetShare: math.NaN(), BudgetPerSecond: math.NaN()},
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("Validate = nil")
	}
	for _, want := range []string{
		"Limits: throttle: limit -3/s: permits -3", `Limits: unit "tokens" without a Cost`, `unit "my tokens" has a space`,
		`LimitsFor(""): throttle: limit 1/0s: per 0s`, "Shadow: throttle: limit 1/s burst -2: burst -2",
		"Line.MaxWait -1s is negative", "Line.MaxForecast -2ns", "MaxPause -3ns", "Line.MaxWaiting -4", "InFlight.Max -5", "Line.MaxWaitingBytes -6", "MaxLanes -7",
		"InFlight.Shared is 8, but the store", "InFlight.Reserve 8 leaves none of InFlight.Shared 8", "Line.LowPriorityShare NaN", "Line.Overflow 9", "Learn 10",
		"Retry.Attempts -1", "Retry.MaxElapsed -1m0s", "Retry.AttemptTimeout -1ns", "Retry.BudgetShare", "Retry.BudgetPerSecond",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Validate = %v, want %q in it", err, want)
		}
	}
	unused := &weir.Transport{Share: 0.5, Learn: weir.LearnOff}
	if err := unused.Validate(); err == nil || !strings.Contains(err.Error(), "Share 0.5 needs Learn or WaitForReset") {
		t.Errorf("Validate = %v, want that Share is not used", err)
	}
	good := []*weir.Transport{
		{Share: 0.5}, {Share: 0.5, Learn: weir.LearnOff, WaitForReset: true},
		{}, {Retry: backoff.None, Line: weir.Line{LowPriorityShare: -1}},
		{Limits: []throttle.Limit{{Permits: 1, Per: time.Second, Unit: "tokens"}}, Cost: func(*http.Request, throttle.Limit) int { return 1 }},
	}
	for _, transport := range good {
		if err := transport.Validate(); err != nil {
			t.Errorf("Validate = %v, want nil", err)
		}
	}
}

// The race detector finds a field that Validate reads while Apply sets it.
func TestValidateBesideApply(t *testing.T) {
	transport := new(weir.Transport)
	var both sync.WaitGroup
	both.Go(func() {
		if err := transport.Validate(); err != nil {
			t.Error(err)
		}
	})
	if err := transport.Apply(weir.Config{MaxPause: time.Minute}); err != nil {
		t.Error(err)
	}
	both.Wait()
}

// If no cost is set for a limit on tokens, one line of log says what follows.
func TestUnitWithoutACostIsLoggedOnce(t *testing.T) {
	tokens := throttle.Limit{Permits: 1e6, Per: time.Second, Burst: 100, Unit: "tokens"}
	for name, tt := range map[string]struct {
		transport *weir.Transport
		lines     int
	}{
		"limits":           {&weir.Transport{Limits: []throttle.Limit{tokens}}, 1},
		"limits of a lane": {&weir.Transport{LimitsFor: func(string) []throttle.Limit { return []throttle.Limit{tokens} }}, 1},
		"a cost":           {&weir.Transport{Limits: []throttle.Limit{tokens}, Cost: func(*http.Request, throttle.Limit) int { return 1 }}, 0},
		"requests":         {&weir.Transport{Limits: []throttle.Limit{throttle.GCRA(1e6, time.Second, 100)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			tt.transport.Base, tt.transport.Logger = harness.Stub{}, slog.New(slog.NewTextHandler(&log, nil))
			defer tt.transport.Close()
			for _, host := range []string{"a", "b", "a"} {
				resp, err := tt.transport.RoundTrip(harness.GetOf(host))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			if n := strings.Count(log.String(), "Cost is nil"); n != tt.lines {
				t.Errorf("%d lines, want %d: %s", n, tt.lines, &log)
			}
		})
	}
}
