package conn

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

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
