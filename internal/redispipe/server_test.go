package redispipe_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir/internal/redispipe"
)

// A command arrives half a round trip later, and its answer a whole one later, by the clock of the
// bubble.
func TestServerIsARoundTripAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, 10*time.Millisecond)
		client := server.Client(t)
		client.Ping(t.Context()) // dials
		asked := time.Now()
		there, err := client.Time(t.Context()).Result()
		if got := there.Sub(asked); err != nil || got != 5*time.Millisecond {
			t.Errorf("Time() = %v after the call, %v, want 5ms", got, err)
		}
		if got := time.Since(asked); got != 10*time.Millisecond {
			t.Errorf("Time() took %v, want 10ms", got)
		}
	})
}

// A message sent while others are in transit takes no longer than they.
func TestServerSendsMessagesInARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, 10*time.Millisecond)
		sub := server.Client(t).Subscribe(t.Context(), "news")
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		tellers := []*redis.Client{server.Client(t), server.Client(t)}
		for _, teller := range tellers {
			teller.Ping(t.Context()) // dials
		}
		start := time.Now()
		for i, teller := range tellers {
			time.AfterFunc(time.Duration(i)*time.Millisecond, func() { teller.Publish(t.Context(), "news", "word") })
		}
		for _, want := range []time.Duration{10 * time.Millisecond, 11 * time.Millisecond} {
			if _, err := sub.ReceiveMessage(t.Context()); err != nil || time.Since(start) != want {
				t.Errorf("received after %v, %v, want %v", time.Since(start), err, want)
			}
		}
		synctest.Wait()
	})
}

func TestSilentServerLosesWhatIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, 2*time.Millisecond)
		client := server.Client(t)
		client.Set(t.Context(), "k", "before", 0)
		server.Break(redispipe.Silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := client.Set(ctx, "k", "lost", 0).Err(); err == nil || time.Since(start) < time.Second {
			t.Errorf("Set() = %v after %v, want no answer within 1s", err, time.Since(start))
		}
		server.Break(redispipe.Healthy)
		if got, err := client.Get(t.Context(), "k").Result(); got != "before" || err != nil {
			t.Errorf("Get() = %q, %v, want the earlier value", got, err)
		}
	})
}

func TestLoadingServerAnswersErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, 0)
		client := redis.NewScript("return 1")
		c := server.Client(t)
		server.Break(redispipe.Loading)
		if err := client.Run(t.Context(), c, nil).Err(); !redis.HasErrorPrefix(err, "LOADING") {
			t.Errorf("Run() = %v, want LOADING", err)
		}
		server.Break(redispipe.Healthy)
		before := server.Calls()
		if got, err := client.Eval(t.Context(), c, nil).Int(); got != 1 || err != nil || server.Calls() != before+1 {
			t.Errorf("Eval() = %d, %v, %d calls, want 1, nil, one call", got, err, server.Calls()-before)
		}
	})
}

// A key expires by the clock of the bubble, and Forget loses all.
func TestServerForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, 0)
		client := server.Client(t)
		client.Set(t.Context(), "short", "x", time.Minute)
		client.Set(t.Context(), "long", "x", time.Hour)
		time.Sleep(time.Minute)
		if n := client.Exists(t.Context(), "short", "long").Val(); n != 1 {
			t.Errorf("%d keys after a minute, want the long one", n)
		}
		server.Forget()
		if err := client.Get(t.Context(), "long").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("Get() after Forget() = %v, want redis.Nil", err)
		}
	})
}
