package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// A redisServer is the replicas' shared Redis, and its faults.
type redisServer interface {
	addr() string
	about() string
	kinds() []kind      // its possible faults
	begin(k kind) error // a fault
	end(k kind) error
	close()
}

func openRedis(ctx context.Context, where string) (redisServer, error) {
	redis.SetLogger(silence{})
	switch where {
	case embeddedRedis:
		return openMini()
	case startRedis:
		return openChild(ctx)
	default:
		return given(where), ping(ctx, where)
	}
}

func ping(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redis at %s: %w", addr, err)
	}
	return nil
}

// given is a Redis of the user's, by its address. It is left alone.
type given string

func (g given) addr() string   { return string(g) }
func (g given) about() string  { return "the Redis at " + string(g) }
func (given) kinds() []kind    { return nil }
func (given) begin(kind) error { return nil }
func (given) end(kind) error   { return nil }
func (given) close()           {}

// mini is the Redis in this process.
type mini struct{ *miniredis.Miniredis }

func openMini() (mini, error) {
	m := mini{miniredis.NewMiniRedis()}
	m.ClockTTL(true)
	return m, m.Start()
}

func (m mini) addr() string { return m.Addr() }
func (mini) about() string  { return "an embedded Redis" }
func (mini) kinds() []kind  { return []kind{killRedis, flushRedis} }
func (m mini) close()       { m.Close() }

func (m mini) begin(k kind) error {
	if k == killRedis {
		m.Close()
	}
	m.FlushAll() // as after the death of a server without persistence
	return nil
}

func (m mini) end(k kind) error {
	if k == killRedis {
		return m.Restart()
	}
	return nil
}

// redisChild is a redis-server that we start.
type redisChild struct {
	program string
	port    int
	process *process
}

func openChild(ctx context.Context) (*redisChild, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	c := &redisChild{program: program}
	if c.port, err = freePort(); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// start returns when the server answers.
func (c *redisChild) start(ctx context.Context) error {
	cmd := exec.Command(c.program, "--port", strconv.Itoa(c.port), "--bind", "127.0.0.1",
		"--dir", os.TempDir(), "--dbfilename", "weir-fleet-nothing.rdb", // absent, and never written
		"--save", "", "--appendonly", "no", "--logfile", os.DevNull)
	p, err := spawn(cmd)
	if err != nil {
		return err
	}
	c.process = p
	for !p.ended() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ping(ctx, c.addr()) == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("redis-server: %w", p.failure())
}

func (c *redisChild) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }
func (*redisChild) about() string  { return "a redis-server" }

func (*redisChild) kinds() []kind {
	if canHalt {
		return []kind{killRedis, stopRedis, flushRedis}
	}
	return []kind{killRedis, flushRedis}
}

func (c *redisChild) begin(k kind) error {
	switch k {
	case killRedis:
		c.process.kill()
		return nil
	case stopRedis:
		return c.process.halt()
	case flushRedis:
		rdb := redis.NewClient(&redis.Options{Addr: c.addr()})
		defer rdb.Close()
		return rdb.FlushAll(context.Background()).Err()
	}
	return errors.ErrUnsupported
}

func (c *redisChild) end(k kind) error {
	switch k {
	case killRedis:
		return c.start(context.Background())
	case stopRedis:
		return c.process.resume()
	}
	return nil
}

func (c *redisChild) close() {
	if c.process != nil {
		c.process.kill()
	}
}

// freePort returns a port without a listener. It lies below those that the kernel gives to outgoing
// connections, so that it is still free when a killed server comes back.
func freePort() (int, error) {
	for range 100 {
		port := 12000 + rand.IntN(20000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port is free")
}
