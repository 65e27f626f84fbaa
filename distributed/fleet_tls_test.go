package distributed_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
)

// A fleet over TLS behaves as without, also when Redis is killed and restarted.
func TestFleetOverTLS(t *testing.T) {
	t.Parallel()
	server, addr, trust := redistest.StartSecure(t)
	f := newFleet(t, plan{config: config{Redis: place{Addrs: []string{addr}}}})
	for range 3 {
		f.adopt(f.way(), redis.NewClient(&redis.Options{Addr: addr, TLSConfig: trust}))
	}
	f.steady()
	f.pass(moment)
	from := now()
	spells := f.suffer(3, moment, server.Kill, func() { server.Restart() })
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}
