package distributed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ownClient returns a client like the given one that does once what it is told,
// in the time it is given: go-redis would run a take whose reply was lost up to
// four times, and dial five. Without one of its own, the store uses the given
// client, and does not close it.
func ownClient(given redis.UniversalClient, set *settings) (client redis.UniversalClient, own bool) {
	switch c := given.(type) {
	case *redis.Client:
		opt := *c.Options()
		opt.MaxRetries = -1
		opt.DialerRetries = 1
		opt.DialTimeout, opt.PoolTimeout = set.firstDeadline, set.firstDeadline
		opt.ReadTimeout, opt.WriteTimeout = set.firstDeadline, set.firstDeadline
		opt.ContextTimeoutEnabled = true
		opt.MinIdleConns = 0
		opt.PipelinePoolSize = -1
		opt.DisableIdentity, opt.ClientName = true, "" // CLIENT needs a grant that nothing else does
		opt.MaintNotificationsConfig = quiet()
		opt.Dialer = telling(&opt)
		return redis.NewClient(&opt), true
	case *redis.ClusterClient:
		opt := *c.Options()
		opt.MaxRetries = -1
		opt.DialerRetries = 1
		opt.DialTimeout, opt.PoolTimeout = set.firstDeadline, set.firstDeadline
		opt.ReadTimeout, opt.WriteTimeout = set.firstDeadline, set.firstDeadline
		opt.ContextTimeoutEnabled = true
		opt.MinIdleConns = 0
		opt.PipelinePoolSize = -1
		opt.DisableIdentity, opt.ClientName = true, ""
		opt.MaintNotificationsConfig = quiet()
		// The master decides; a replica's state is of the past.
		opt.ReadOnly, opt.RouteByLatency, opt.RouteRandomly = false, false, false
		newNode := opt.NewClient
		if newNode == nil {
			newNode = redis.NewClient
		}
		opt.NewClient = func(opt *redis.Options) *redis.Client {
			opt.Dialer = telling(opt)
			node := newNode(opt)
			node.AddHook(onceOnly{})
			return node
		}
		return redis.NewClusterClient(&opt), true
	case *redis.Ring:
		return ownRing(c, set), true
	default:
		return given, false
	}
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// telling returns the dialer of options, whose failures the first use of the connection
// tells. Of a dial that fails go-redis writes a line past the store's logger, and after
// some of them its pool dials but once a second.
func telling(opt *redis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := opt.Dialer
	if dial == nil {
		dial = redis.NewDialer(opt)
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, failed := dial(ctx, network, addr)
		if failed != nil {
			conn = undialled{failed}
		}
		return conn, nil
	}
}

// An undialled connection is none: the dial failed.
type undialled struct{ err error }

func (u undialled) Read([]byte) (int, error)       { return 0, u.err }
func (u undialled) Write([]byte) (int, error)      { return 0, u.err }
func (undialled) Close() error                     { return nil }
func (undialled) LocalAddr() net.Addr              { return new(net.TCPAddr) }
func (undialled) RemoteAddr() net.Addr             { return new(net.TCPAddr) }
func (undialled) SetDeadline(time.Time) error      { return nil }
func (undialled) SetReadDeadline(time.Time) error  { return nil }
func (undialled) SetWriteDeadline(time.Time) error { return nil }

// onceOnly hides from a Cluster client what it would answer by running the
// command again, on this node or another: a lost reply may be of a script that
// has run. Redirections pass, for they say that it has not.
type onceOnly struct{}

func (onceOnly) DialHook(next redis.DialHook) redis.DialHook { return next }

func (onceOnly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (onceOnly) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		_, moved := redis.IsMovedError(err)
		_, ask := redis.IsAskError(err)
		if err == nil || moved || ask || redis.IsTryAgainError(err) {
			return err
		}
		return hidden{err}
	}
}

// A hidden error does not unwrap for go-redis.
type hidden struct{ err error }

func (h hidden) Error() string { return h.err.Error() }

// plain returns the error as the node answered it. One of making a connection is hidden
// twice.
func plain(err error) error {
	var h hidden
	for errors.As(err, &h) {
		err = h.err
	}
	return err
}

// plainAddress returns the address of a Redis beyond this machine and private
// networks that is spoken to without TLS; "" if there is none.
func plainAddress(given redis.UniversalClient) string {
	var addrs []string
	var secure *tls.Config
	switch c := given.(type) {
	case *redis.Client:
		if opt := c.Options(); opt.Network != "unix" {
			addrs, secure = []string{opt.Addr}, opt.TLSConfig
		}
	case *redis.ClusterClient:
		addrs, secure = c.Options().Addrs, c.Options().TLSConfig
	case *redis.Ring:
		addrs, secure = slices.Sorted(maps.Values(c.Options().Addrs)), c.Options().TLSConfig
	}
	if secure != nil {
		return ""
	}
	for _, addr := range addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			continue
		}
		if ip, err := netip.ParseAddr(host); err == nil && !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast() {
			return fmt.Sprint(ip)
		}
	}
	return ""
}
