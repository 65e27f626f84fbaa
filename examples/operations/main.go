// Operations serves the metrics of a program with many faults: each alert of docs/operations has
// its cause in one lane, and two lanes are healthy.
//
//	go run ./operations -addr localhost:9464
//
// Let Prometheus scrape http://localhost:9464/metrics. It ends with Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

func main() {
	addr := flag.String("addr", "localhost:9464", "where the metrics are served")
	quiet := flag.Duration("quiet", time.Hour, "time before the spike of arrivals")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		fmt.Printf("http://%s/metrics\n", listener.Addr())
		err = run(ctx, listener, *quiet)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the metrics until ctx ends. The spike of arrivals comes after a quiet time.
func run(ctx context.Context, listener net.Listener, quiet time.Duration) error {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	t, err := open(meters, quiet)
	if err != nil {
		return err
	}
	defer t.close()
	for i := range t.works {
		for range max(t.works[i].workers, 1) {
			go t.works[i].do(ctx)
		}
	}
	server := &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
