package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/needs"
)

const pages = "../../docs/operations/"

func TestMain(m *testing.M) { needs.Exit(m.Run()) }

// lanes are the lanes with each alert's cause.
var lanes = map[string]string{
	"WeirRefused":           "refused",
	"WeirWaitsLong":         "crowded",
	"WeirRejected":          "crowded",
	"WeirLimitUsedUp":       "used up",
	"WeirRetryBudgetSpent":  "failing",
	"WeirArrivalsSpike":     "spike",
	"WeirShadowDiffers":     "shadow",
	"WeirStoreFallback":     "fallback",
	"WeirQueueNearlyFull":   "crowded",
	"WeirReplicasOutOfStep": "strayed",
}

// Prometheus scrapes the program. Each alert fires for the lane that has its cause, none for the
// healthy lanes, and each query of the dashboard returns data.
func TestAlertsFireAndPanelsHaveData(t *testing.T) {
	p := scrape(t, serve(t, 15*time.Second))
	var rules struct {
		Groups []struct {
			Rules []struct {
				Name        string
				Annotations map[string]string
			}
		}
	}
	p.ask(t, "rules", nil, &rules)
	runbook, waiting := read(t, "README.md"), map[string]bool{}
	for _, r := range rules.Groups[0].Rules {
		waiting[r.Name] = true
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "docs/operations/README.md#")
		if lanes[r.Name] == "" || !strings.Contains(runbook, "\n## "+r.Name+"\n") || anchor != strings.ToLower(r.Name) {
			t.Errorf("%s has lane %q here, and the runbook %q", r.Name, lanes[r.Name], r.Annotations["runbook_url"])
		}
	}
	if len(waiting) != len(lanes) {
		t.Errorf("%d alerts, want %d", len(waiting), len(lanes))
	}
	wrong := true // a store may be late on a busy machine, and then recovers within the time
	for end := time.Now().Add(50 * time.Second); len(waiting) > 0 || wrong; time.Sleep(500 * time.Millisecond) {
		wrong = false
		for _, a := range p.firing(t) {
			switch name := a["alertname"]; a["weir_lane"] {
			case "healthy":
				t.Errorf("%s fires for the healthy lane", name)
			case "shared":
				wrong = true
			case lanes[name]:
				delete(waiting, name)
			}
		}
		if time.Now().After(end) || t.Failed() {
			t.Fatalf("these do not fire: %v; these do: %v", waiting, p.firing(t))
		}
	}
	for title, queries := range panels(t) {
		for _, q := range queries {
			if n := p.values(t, q); n == 0 {
				t.Errorf("panel %q has no data: %s", title, q)
			}
		}
	}
}

// The rules behave at their bounds as their unit tests require.
func TestRulesPassTheirUnitTests(t *testing.T) {
	promtool := needs.Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = pages
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	tests := read(t, "alerts_test.yaml")
	for name := range lanes {
		if !strings.Contains(tests, "alertname: "+name+"\n        exp_alerts:\n") {
			t.Errorf("alerts_test.yaml has no case with a firing %s", name)
		}
	}
}

// The dashboard has the form that Grafana documents: panels with an ID of their own on a grid of 24
// columns, none over another, and queries with distinct letters.
func TestDashboardHasItsForm(t *testing.T) {
	var d dashboard
	decoder := json.NewDecoder(strings.NewReader(read(t, "dashboard.json")))
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] != "" {
			t.Errorf("panels %q and %q have the ID %d", ids[p.ID], p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
			t.Errorf("panel %q is at %+v, want it within 24 columns", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("panels %q and %q are both at %v", taken[at], p.Title, at)
				}
				taken[at] = p.Title
			}
		}
		var refs []string
		for _, target := range p.Targets {
			if refs = append(refs, target.RefID); target.Datasource.UID != "${datasource}" {
				t.Errorf("a query of panel %q is to %q, want the chosen data source", p.Title, target.Datasource.UID)
			}
		}
		if slices.Sort(refs); len(slices.Compact(refs)) != len(p.Targets) || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("queries of panel %q are %q, want some, each with a letter of its own", p.Title, refs)
		}
	}
}

// serve runs the program and returns the address of its metrics.
func serve(t *testing.T, quiet time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- run(ctx, listener, quiet) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// A prom is a running Prometheus, by its address.
type prom string

var hour, minute = regexp.MustCompile(`\b(\d+)h\b`), regexp.MustCompile(`\b(\d+)m\b`)

// scrape starts a Prometheus that scrapes a target each second. Each minute of the rules is a
// second there.
func scrape(t *testing.T, target string) prom {
	t.Helper()
	program, dir := needs.Program(t, "prometheus"), t.TempDir()
	rules := minute.ReplaceAllString(read(t, "alerts.yaml"), "${1}s")
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: operations
    static_configs: [{targets: [%q]}]
`, target)
	for name, text := range map[string]string{"alerts.yaml": hour.ReplaceAllString(rules, "${1}m"), "prometheus.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	var log bytes.Buffer
	cmd := exec.Command(program, "--config.file", filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", addr)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for range 100 {
		if resp, err := http.Get("http://" + addr + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return prom(addr)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("Prometheus is not ready after ten seconds")
	return ""
}

// ask calls the API and reads the data of its answer.
func (p prom) ask(t *testing.T, what string, with url.Values, data any) {
	t.Helper()
	resp, err := http.Get("http://" + string(p) + "/api/v1/" + what + "?" + with.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v = %s %q, %v", what, with, resp.Status, answer.Error, err)
	}
}

// firing returns the labels of each alert that fires.
func (p prom) firing(t *testing.T) (labels []map[string]string) {
	t.Helper()
	var all struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	p.ask(t, "alerts", nil, &all)
	for _, a := range all.Alerts {
		if a.State == "firing" {
			labels = append(labels, a.Labels)
		}
	}
	return labels
}

// values returns how many series of a query's result have a number.
func (p prom) values(t *testing.T, query string) (n int) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.ask(t, "query", url.Values{"query": {query}}, &data)
	for _, r := range data.Result {
		if r.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

// A dashboard is the part of one that this test reads.
type dashboard struct {
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct {
			RefID, Expr string
			Datasource  struct{ UID string }
		}
	}
}

// panels returns the queries of each panel, with the variables as Grafana fills them in.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "10s", "$job", ".+", "$lane", ".+")
	all := map[string][]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], fill.Replace(target.Expr))
		}
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(pages + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
