package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
)

// serverAddress is the name that the semantic conventions have for the host of a request's
// URL, without its port.
const serverAddress = attribute.Key("server.address")

type serverKey struct{}

// WithServer returns a context whose waits, delays and counts have the attribute
// server.address with that host. If the host is empty, they have none.
func WithServer(ctx context.Context, host string) context.Context {
	if host = label(host); host == serverOf(ctx) {
		return ctx
	}
	return context.WithValue(ctx, serverKey{}, host)
}

// serverOf returns the host that WithServer set; "" without a call of it.
func serverOf(ctx context.Context) string {
	host, _ := ctx.Value(serverKey{}).(string)
	return host
}

// withServer appends the attribute to those of a span.
func withServer(ctx context.Context, with []attribute.KeyValue) []attribute.KeyValue {
	if host := serverOf(ctx); host != "" {
		with = append(with, serverAddress.String(host))
	}
	return with
}

// NameServers makes the metrics of calls have the attribute server.address. It is called
// before the first Meter is made.
func (m *Metrics) NameServers() {
	if m != nil {
		m.servers = make(map[string]bool)
	}
}

// server returns the name of a call's host in metrics; "": none. The first maxNamed hosts are
// named, and all others share one name.
func (m *Metrics) server(ctx context.Context) string {
	if m.servers == nil {
		return ""
	}
	host := serverOf(ctx)
	if host == "" {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.servers[host] && len(m.servers) >= maxNamed {
		return rest
	}
	m.servers[host] = true
	return host
}

// nameless returns the attributes without the server's. Lanes that share a name have too few sets
// of attributes for one per host.
func nameless(with []attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(with, func(kv attribute.KeyValue) bool { return kv.Key == serverAddress })
}
