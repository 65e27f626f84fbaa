package weir_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestConfigIsReadAndWritten(t *testing.T) {
	text := `{
		"limits": ["100/s burst 20"], "lanes": {"api.example.com": ["5000/h"]}, "shadow": ["leaky 10/s"],
		"routes": [{"match": "POST /v1/chat", "limits": ["90000/m of tokens"], "cost": {"tokens": 800}}],
		"line": {"maxWaiting": 7, "maxWait": "30s", "overflow": "shedOldest"}, "inFlight": {"max": 5, "untilHeaders": true},
		"retry": {"attempts": 3, "budgetShare": -1}, "maxPause": "5m", "learn": "spread", "waitForReset": true, "maxLanes": 9, "serverAddress": true, "unguardedResends": true}`
	want := weir.Config{
		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
		Lanes:  map[string][]throttle.Limit{"api.example.com": {{Permits: 5000, Per: time.Hour}}},
		Shadow: []throttle.Limit{throttle.LeakyBucket(10, time.Second)},
		Routes: []weir.RouteConfig{{
			Match: "POST /v1/chat", Limits: []throttle.Limit{throttle.Limit{Permits: 90000, Per: time.Minute}.Of("tokens")}, Cost: map[string]int{"tokens": 800},
		}},
		Line:     weir.Line{MaxWaiting: 7, MaxWait: 30 * time.Second, Overflow: shaping.OverflowShedOldest},
		InFlight: weir.InFlight{Max: 5, UntilHeaders: true},
		Retry:    &backoff.Policy{Attempts: 3, BudgetShare: -1},
		MaxPause: 5 * time.Minute, Learn: weir.LearnSpread, WaitForReset: true, MaxLanes: 9, ServerAddress: true, UnguardedResends: true,
	}
	var got weir.Config
	if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("Unmarshal = %+v, %v, want %+v", got, err, want)
	}
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again weir.Config
	if err := json.Unmarshal(written, &again); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("Unmarshal(%s) = %+v, %v, want %+v", written, again, err, want)
	}
}

// Each data field of a Transport is in Config under its name, so that a new one is not forgotten.
func TestConfigHasAllThatIsData(t *testing.T) {
	other := map[string]string{
		"PrepareRedirects": "belongs to Prepare, which is a function",
	}
	config, transport := reflect.TypeFor[weir.Config](), reflect.TypeFor[weir.Transport]()
	for _, f := range reflect.VisibleFields(transport) {
		k := f.Type.Kind()
		if !f.IsExported() || k == reflect.Func || k == reflect.Interface || f.Type.String() == "*slog.Logger" || f.Type.String() == "*headers.Dialect" || other[f.Name] != "" {
			continue
		}
		if c, ok := config.FieldByName(f.Name); !ok || c.Type != f.Type {
			t.Errorf("Config has no %s of type %s", f.Name, f.Type)
		}
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	c := weir.Config{MaxLanes: 3}
	err := json.Unmarshal([]byte(`{"limits": ["1/s"], "learn": "sometimes", "line": {"overflow": "shed"}, "retry": {"delay": "1s"}}`), &c)
	for _, want := range []string{`learn: weir: Learning "sometimes" is none of`, `line.overflow: shaping: Overflow "shed" is none of`, `retry.delay: unknown field`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Unmarshal = %v, want %q in it", err, want)
		}
	}
	if !reflect.DeepEqual(c, weir.Config{MaxLanes: 3}) {
		t.Errorf("Unmarshal changed the configuration to %+v", c)
	}
	transport := &weir.Transport{MaxLanes: 5}
	err = transport.Apply(weir.Config{Line: weir.Line{MaxWait: -1}, InFlight: weir.InFlight{Shared: 2}, Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second).Of("tokens")}})
	for _, want := range []string{`line.maxWait: -1ns is negative`, `inFlight.shared: is 2, but the store`, `limits: unit "tokens" without a Cost`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Apply = %v, want %q in it", err, want)
		}
	}
	if transport.Line != (weir.Line{}) || transport.Limits != nil || transport.Key != nil {
		t.Errorf("Apply changed the Transport to %+v", transport)
	}
}
