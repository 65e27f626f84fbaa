package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weirgo/weir"
)

// measured returns a Transport whose metrics are served at /metrics.
func measured() (*weir.Transport, error) {
	reader, err := exporter.New(exporter.WithoutScopeInfo()) // go.opentelemetry.io/otel/exporters/prometheus
	if err != nil {
		return nil, err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)) // go.opentelemetry.io/otel/sdk/metric
	http.Handle("/metrics", promhttp.Handler())                        // github.com/prometheus/client_golang/prometheus/promhttp
	return &weir.Transport{MeterProvider: meters}, nil
}

// The page's code serves the metrics of a call.
func TestPageServesMetrics(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```go examples\n(.*?)^```").FindStringSubmatch(read(t, "README.md"))
	if block == nil || !bytes.Contains(regexp.MustCompile(`(?m)^\t`).ReplaceAll(source, nil), []byte(block[1])) {
		t.Fatalf("the block of the page is not in this file: %q", block)
	}
	transport, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	vendor := httptest.NewServer(http.NotFoundHandler())
	defer vendor.Close()
	for range 2 {
		resp, err := (&http.Client{Transport: transport}).Get(vendor.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if text, _ := io.ReadAll(w.Body); !strings.Contains(string(text), `weir_admissions_total{weir_lane="127.0.0.1`) {
		t.Errorf("/metrics has no calls:\n%s", text)
	}
}
