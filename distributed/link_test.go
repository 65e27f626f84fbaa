package distributed_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// userName must not appear in any log of the tests below.
const userName = "canary-user"

// A loss is logged with its cause in plain words, the text of Redis's error and the address, but
// without the user's name or password.
func TestALossIsLoggedWithTheErrorOfRedis(t *testing.T) {
	t.Parallel()
	user, minimum := "ACL SETUSER "+userName+" on >"+password+" ", distributed.MinimumACL
	for _, c := range []struct {
		name    string
		setup   string
		options redis.Options
		cause   string
		want    []string
	}{
		{"no password given", "CONFIG SET requirepass " + password, redis.Options{}, "auth", []string{"user or password", "unauthenticated"}},
		{"wrong password", "CONFIG SET requirepass another", redis.Options{Password: password}, "auth", []string{"user or password", "WRONGPASS invalid username-password pair or user is disabled"}},
		{"unknown user", "PING", redis.Options{Username: userName, Password: password}, "auth", []string{"user or password", "WRONGPASS"}},
		{"user switched off", user + "off " + minimum, redis.Options{Username: userName, Password: password}, "auth", []string{"user or password", "WRONGPASS"}},
		{"no script", user + minimum + " -evalsha -eval", redis.Options{Username: userName, Password: password}, "noperm", []string{"MinimumACL", "NOPERM", "'evalsha' command"}},
		{"no command in the script", user + minimum + " -hmget", redis.Options{Username: userName, Password: password}, "noperm", []string{"MinimumACL", "can't run this command"}},
		{"no keys", user + minimum + " resetkeys ~another:*", redis.Options{Username: userName, Password: password}, "noperm", []string{"MinimumACL", "NOPERM"}},
		{"no select", user + minimum, redis.Options{Username: userName, Password: password, DB: 1}, "noperm", []string{"MinimumACL", "'select' command"}},
		{"no such database", "PING", redis.Options{DB: 1000}, "other", []string{"ERR DB index is out of range"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			if _, err := server.Do(strings.Fields(c.setup)...); err != nil {
				t.Fatal(err)
			}
			var journal diary
			var log watchLog
			c.options.Addr = server.Addr()
			wait(t, &c.options, &journal, &log)
			if causes := log.causes(store.OperationReserve); len(causes) == 0 || causes[0] != c.cause {
				t.Errorf("the cause is %q, want %q", causes, c.cause)
			}
			for _, want := range append(c.want, "level=WARN", "cause="+c.cause, "address="+server.Addr(), "policy=local") {
				if !strings.Contains(journal.String(), want) {
					t.Errorf("the log lacks %q:\n%s", want, journal.String())
				}
			}
			if text := journal.String(); strings.Contains(text, "canary") || strings.Contains(text, "another") {
				t.Errorf("the log has a secret:\n%s", text)
			}
		})
	}
}

// An unreachable server is logged as such, with its address.
func TestALossIsLoggedWithTheErrorOfTheNetwork(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	var journal diary
	var log watchLog
	wait(t, &redis.Options{Addr: addr}, &journal, &log)
	for _, want := range []string{"cause=refused", "connection refused", "address=" + addr} {
		if !strings.Contains(journal.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, journal.String())
		}
	}
}

// A cause that only an operator can remove is logged even if it appears during a loss.
func TestALastingCauseIsLoggedInALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	given := place{Addrs: []string{server.Addr()}}.client()
	defer given.Close()
	store := distributed.New(given, "fleet")
	store.BreakFor = 50 * time.Millisecond
	var journal diary
	store.Logger = journal.logger()
	defer store.Close()
	server.Kill()
	l, err := store.Limiter("vendor", throttle.TokenBucket(1000, time.Second, 1))
	if err != nil {
		t.Fatal(err)
	}
	q := shaping.NewQueue(l)
	for began := time.Now(); !strings.Contains(journal.String(), "cause=auth"); {
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(journal.String(), "cause=refused") && !strings.Contains(journal.String(), "cause=auth") {
			server.Restart("--requirepass", "another")
		}
		if time.Since(began) > patience {
			t.Fatalf("logged:\n%s", journal.String())
		}
	}
	if n := strings.Count(journal.String(), "cause=auth"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, journal.String())
	}
}

// A missing grant for the channel is logged once, with its consequences and the command that grants
// it. It is a cause of its own in the metrics. Nothing else is lost.
func TestAMissingGrantOfTheChannelIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, lack := range map[string]string{"channel": "resetchannels", "subscribe": "-subscribe", "publish": "-publish"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			grant(t, server, append(strings.Fields(distributed.MinimumACL), lack)...)
			given := place{Addrs: []string{server.Addr()}, User: "weir", Password: password}.client()
			defer given.Close()
			ours := distributed.New(given, "fleet")
			var journal diary
			ours.Logger = journal.logger()
			defer ours.Close()
			var log watchLog
			for _, lane := range []string{"one", "another"} {
				l, err := ours.Limiter(lane, throttle.TokenBucket(1000, time.Second, 1))
				if err != nil {
					t.Fatal(err)
				}
				log.watch(l.(store.Limiter))
				if err := shaping.NewQueue(l).Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			await(t, "the line", func() bool { return strings.Contains(journal.String(), "level=WARN") })
			if causes := log.causes(store.OperationSubscribe); !slices.Equal(causes, []string{"channel"}) {
				t.Errorf("the causes are %q, want one of the channel", causes)
			}
			text := journal.String()
			for _, want := range []string{"does not stop the others", "&weir:1:* +subscribe +publish", "cause=channel", "NOPERM", "address=" + server.Addr()} {
				if !strings.Contains(text, want) {
					t.Errorf("the log lacks %q:\n%s", want, text)
				}
			}
			if n := strings.Count(text, "level=WARN"); n != 1 || strings.Contains(text, password) {
				t.Errorf("%d lines:\n%s", n, text)
			}
		})
	}
}

// wait makes a store over such a client, and one call waits there.
func wait(t *testing.T, options *redis.Options, journal *diary, log *watchLog) {
	t.Helper()
	given := redis.NewClient(options)
	defer given.Close()
	ours := distributed.New(given, "fleet")
	ours.Logger = journal.logger()
	defer ours.Close()
	l, err := ours.Limiter("vendor", throttle.TokenBucket(1000, time.Second, 1))
	if err != nil {
		t.Fatal(err)
	}
	log.watch(l.(store.Limiter))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := shaping.NewQueue(l).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "the call to end", func() bool { return len(log.causes(store.OperationReserve)) > 0 })
	await(t, "the line", func() bool { return strings.Contains(journal.String(), "level=WARN") })
}

// causes returns how the calls of an operation ended.
func (w *watchLog) causes(of store.Operation) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.Operation == of {
			all = append(all, c.Cause)
		}
	}
	return all
}
