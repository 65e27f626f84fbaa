package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A Client is the client of Redis that a store uses.
type Client struct {
	Redis redis.UniversalClient
	Own   bool // it was made by New, keeps its deadlines, and is closed by Close
}

// New returns a client like the given one that sends each command once, in the time it
// is given: go-redis would run a script whose reply was lost up to four times, and dial
// five. A client of a kind whose options cannot be read is used as it is. Dials, reads
// and writes end after the timeout.
//
// On a Ring a key stays on its shard also while that is down. A Ring that moves keys to other
// shards does so at each replica at a different time. For seconds the vendor would see the limits
// twice.
func New(given redis.UniversalClient, timeout time.Duration) *Client {
	switch c := given.(type) {
	case *redis.Client:
		opt := *c.Options()
		once(&opt, timeout)
		return &Client{redis.NewClient(&opt), true}
	case *redis.ClusterClient:
		opt := *c.Options()
		opt.ContextTimeoutEnabled = true
		opt.MaintNotificationsConfig = quiet()
		// The master decides; a replica's state is of the past.
		opt.ReadOnly, opt.RouteByLatency, opt.RouteRandomly = false, false, false
		newNode := opt.NewClient
		opt.NewClient = func(opt *redis.Options) *redis.Client {
			once(opt, timeout)
			node := newNode(opt)
			node.AddHook(onceOnly{})
			return node
		}
		return &Client{redis.NewClusterClient(&opt), true}
	case *redis.Ring:
		opt := *c.Options()
		opt.MaxRetries = -1
		opt.HeartbeatFrequency = time.Hour
		opt.HeartbeatFn = func(context.Context, *redis.Client) bool { return true }
		newShard := opt.NewClient
		opt.NewClient = func(opt *redis.Options) *redis.Client {
			once(opt, timeout)
			return newShard(opt)
		}
		return &Client{redis.NewRing(&opt), true}
	default:
		return &Client{given, false}
	}
}

// once makes a client of one server send each command once.
func once(opt *redis.Options, timeout time.Duration) {
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.DialTimeout, opt.PoolTimeout = timeout, timeout
	opt.ReadTimeout, opt.WriteTimeout = timeout, timeout
	opt.ContextTimeoutEnabled = true
	opt.MinIdleConns = 0
	opt.PipelinePoolSize = -1
	opt.DisableIdentity, opt.ClientName = true, "" // nothing else needs the grant for CLIENT
	opt.MaintNotificationsConfig = quiet()
	opt.Dialer = failingLater(opt)
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// failingLater returns the dialer of options, but a dial that fails returns a connection whose
// first use fails. Otherwise go-redis would log each failed dial past the store's logger, and
// after some of them dial only once a second.
func failingLater(opt *redis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
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

// An undialled connection fails: the dial did.
type undialled struct{ err error }

func (u undialled) Read([]byte) (int, error)       { return 0, u.err }
func (u undialled) Write([]byte) (int, error)      { return 0, u.err }
func (undialled) Close() error                     { return nil }
func (undialled) LocalAddr() net.Addr              { return new(net.TCPAddr) }
func (undialled) RemoteAddr() net.Addr             { return new(net.TCPAddr) }
func (undialled) SetDeadline(time.Time) error      { return nil }
func (undialled) SetReadDeadline(time.Time) error  { return nil }
func (undialled) SetWriteDeadline(time.Time) error { return nil }

// Close closes a client that New made.
func (c *Client) Close() {
	if c.Own {
		_ = c.Redis.Close() // its connections are closed either way
	}
}

// Command begins the words of a command that runs a script. Run fills in the first two: the
// command's name and the script.
func Command(words, keys []any) []any {
	return append(append(words, nil, nil, len(keys)), keys...)
}

// Run runs a script once, by a command of such words. Hash and source are interfaces already,
// because converting a string allocates with each call.
func (c *Client) Run(ctx context.Context, hash, source any, words []any) (any, error) {
	words[0], words[1] = "evalsha", hash
	v, err := c.eval(ctx, words)
	if err == nil {
		return v, nil
	}
	if redis.HasErrorPrefix(plain(err), "NOSCRIPT") {
		words[0], words[1] = "eval", source
		v, err = c.eval(ctx, words)
	}
	if err = plain(err); err == nil {
		return v, nil
	}
	if cluster, ok := c.Redis.(*redis.ClusterClient); ok && c.Own {
		cluster.ReloadState(ctx) // in the background: another node may be the master by now
	}
	if ctx.Err() != nil {
		return nil, context.DeadlineExceeded // whatever error the socket returned
	}
	return nil, err
}

// eval sends a command that runs a script. It sets all that a Cluster's client would otherwise ask
// the nodes for, before each call and by a command without a grant.
func (c *Client) eval(ctx context.Context, words []any) (any, error) {
	cmd := redis.NewCmd(ctx, words...)
	cmd.SetFirstKeyPos(3)
	cmd.SetStepCount(1)
	_ = c.Redis.Process(ctx, cmd) // the result has the error
	return cmd.Result()
}

// Publish publishes a message by one of the Publishers.
func Publish(ctx context.Context, by redis.UniversalClient, channel, message string) error {
	cmd := redis.NewIntCmd(ctx, "publish", channel, message)
	cmd.SetFirstKeyPos(1)
	cmd.SetStepCount(1)
	return plain(by.Process(ctx, cmd))
}

// Publishers returns the clients from which messages arrive: of a Ring that of each shard, because
// a shard publishes the messages about its keys.
func (c *Client) Publishers() []redis.UniversalClient {
	ring, ok := c.Redis.(*redis.Ring)
	if !ok {
		return []redis.UniversalClient{c.Redis}
	}
	var shards []redis.UniversalClient
	for _, shard := range ring.GetShardClients() {
		shards = append(shards, shard)
	}
	return slices.Clip(shards)
}

// Home returns the address of the server that holds a key of a Cluster or a Ring. It
// reports false if there is only one server, or if the Cluster does not return it within a time.
func (c *Client) Home(ctx context.Context, key string, within time.Duration) (addr string, ok bool) {
	switch c := c.Redis.(type) {
	case *redis.Ring:
		if shard, err := c.GetShardClientForKey(key); err == nil {
			return shard.Options().Addr, true
		}
	case *redis.ClusterClient: // it may ask the network
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		if master, err := c.MasterForKey(ctx, key); err == nil {
			return master.Options().Addr, true
		}
	}
	return "", false
}

// servers are a client's servers by its options.
type servers struct {
	addrs    []string
	password string // "": none, or a function
	secure   *tls.Config
	room     int // connections to each, at most
}

// serversOf returns the servers of a client. For one found by Sentinel, go-redis has a placeholder
// instead of the address.
func serversOf(client redis.UniversalClient) (s servers) {
	active, usual := 0, 10*runtime.GOMAXPROCS(0) // as go-redis has it
	switch c := client.(type) {
	case *redis.Client:
		opt := c.Options()
		s, active = servers{[]string{opt.Addr}, opt.Password, opt.TLSConfig, opt.PoolSize}, opt.MaxActiveConns
	case *redis.ClusterClient:
		opt := c.Options()
		s, active = servers{opt.Addrs, opt.Password, opt.TLSConfig, opt.PoolSize}, opt.MaxActiveConns
	case *redis.Ring:
		opt := c.Options()
		s, active = servers{slices.Sorted(maps.Values(opt.Addrs)), opt.Password, opt.TLSConfig, opt.PoolSize}, opt.MaxActiveConns
	}
	if s.room = cmp.Or(s.room, usual); active > 0 {
		s.room = min(s.room, active)
	}
	return s
}

// AddressOf returns the address of a server of a client, or else all addresses that the client was
// given.
func AddressOf(client redis.UniversalClient, server string) string {
	return cmp.Or(server, strings.Join(serversOf(client).addrs, ","))
}

// Connections returns the most connections of the client to each server.
func (c *Client) Connections() int { return serversOf(c.Redis).room }

// PlainAddress returns the address of a Redis beyond this machine and private
// networks that is spoken to without TLS; "" if there is no such address.
func PlainAddress(given redis.UniversalClient) string {
	s := serversOf(given)
	if s.secure != nil {
		return ""
	}
	for _, addr := range s.addrs {
		host, _, err := net.SplitHostPort(addr) // a socket file has none
		if err != nil {
			continue
		}
		if ip, err := netip.ParseAddr(host); err == nil && !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast() {
			return ip.String()
		}
	}
	return ""
}

// onceOnly hides errors from a Cluster client that would make it run the command again, on this
// node or another: the script of a lost reply may have run. Redirections pass, because they mean
// that it has not.
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

// plain returns the error as the node answered it. An error of connecting is hidden twice.
func plain(err error) error {
	var h hidden
	for errors.As(err, &h) {
		err = h.err
	}
	return err
}
