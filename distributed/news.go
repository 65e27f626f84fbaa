package distributed

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
)

// The news of a namespace say which lane another replica has paused, and for how
// long: no time means that an operator has ended the pause. They stop the replicas
// that hold permits. A replica that misses them learns of the pause with its next
// call, so that only speed depends on them.

// subscribe begins to hear the news, once.
func (k *link) subscribe() {
	k.subscription.Do(func() {
		for _, client := range k.client.Publishers() {
			k.hearing.Go(func() {
				for k.stopped.Err() == nil {
					k.listen(client)
				}
			})
		}
	})
}

const (
	silence = 30 * time.Second       // after it the subscription is made anew: the connection may be dead
	respite = 500 * time.Millisecond // before it is tried again
)

// listen takes in news until the connection fails or is silent for long.
func (k *link) listen(client redis.UniversalClient) {
	sub := client.Subscribe(k.stopped)
	defer func() { _ = sub.Close() }()
	began := time.Now()
	layouts := script.LayoutChannel(k.store.namespace)
	if err := sub.Subscribe(k.stopped, k.store.channel, layouts); err != nil {
		k.retreat(conn.CauseOf(err))
		return
	}
	// Close waits while a connection is made, which by now it is: closing it from
	// the side ends what would otherwise be read for as long as the silence lasts.
	defer context.AfterFunc(k.stopped, func() { _ = sub.Close() })()
	for ; ; began = time.Now() {
		got, err := sub.ReceiveTimeout(k.stopped, silence)
		if err != nil {
			cause := conn.CauseOf(err)
			if cause == "noperm" {
				k.lacksGrant(client, began, err)
			}
			if cause != "timeout" || time.Since(began) < silence {
				k.retreat(cause)
			}
			return
		}
		switch m := got.(type) {
		case *redis.Subscription:
			if m.Channel == layouts {
				k.announce(client)
			}
		case *redis.Message:
			if m.Channel == layouts {
				k.compare(client, m.Payload)
			} else {
				k.deliver(m.Payload)
			}
		}
	}
}

// announce publishes the layout that this store writes. It also finds out whether the user may
// publish, because the script ignores that error. It takes a connection of the node as a call for a lane does.
func (k *link) announce(client redis.UniversalClient) {
	n := k.node("")
	if shard, ok := client.(*redis.Client); ok && client != k.client.Redis {
		n = k.node(shard.Options().Addr)
	}
	n.Enter(announcement{link: k, client: client})
}

// An announcement is a call that publishes the layout. It is for no lane, so it loses no node.
type announcement struct {
	conn.Caller
	link   *link
	client redis.UniversalClient
}

func (a announcement) Call() {
	k, began := a.link, time.Now()
	ctx, cancel := context.WithTimeout(k.stopped, k.store.set.firstDeadline)
	defer cancel()
	err := conn.Publish(ctx, a.client, script.LayoutChannel(k.store.namespace), k.store.layout)
	if conn.CauseOf(err) == "noperm" {
		k.lacksGrant(a.client, began, err)
	}
}

// retreat waits before the next subscription. Without the grant for it that is long,
// for an operator must act.
func (k *link) retreat(cause string) {
	d := respite
	if conn.Lasting(cause) {
		d = time.Minute
	}
	select {
	case <-time.After(d):
	case <-k.stopped.Done():
	}
}

// deliver hands news to the limiters of the lane, or to its slots. What does not read as news is none.
func (k *link) deliver(news string) {
	lane, rest, _ := strings.Cut(news, " ")
	if lane == slotsNews {
		k.summon(rest)
		return
	}
	first, second, _ := strings.Cut(rest, " ")
	epoch, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return
	}
	micros, err := strconv.ParseInt(second, 10, 64)
	if err != nil || micros < 0 || micros > int64(script.LongestPause/time.Microsecond) {
		return
	}
	for _, l := range k.store.limiters(lane) {
		l.hear(epoch, time.Duration(micros)*time.Microsecond)
	}
}

// hearsay is how long a pause is believed that only news have told. Whoever may publish
// can forge them; the store's own word comes well within that time.
const hearsay = time.Second

// hear takes in news: that the lane is paused from now on, or that a pause was ended.
func (l *limiter) hear(epoch int64, remaining time.Duration) {
	l.mu.Lock()
	if epoch <= l.known.seen.Epoch && l.met || l.closed || l.learning != nil && l.learning.revokes {
		l.mu.Unlock()
		return
	}
	// The next call returns what the other replicas have learned. Callers in line make one,
	// unless the learned limit holds them.
	s := l.learning
	asks := s != nil && (!l.demand.waiting || !s.counted || s.pace.NotBefore > l.view().Now)
	if (asks || remaining > hearsay) && !l.lost {
		l.start(nil)
	}
	now := l.clock.now()
	// The epoch itself is the store's to tell, with the next call.
	if until := now.Add(min(remaining, hearsay)); until > l.paused {
		l.pause(until)
		l.outage.pause(now, until)
	} else {
		l.voided++
		l.discard(l.hand.all())
	}
	if remaining == 0 && !l.pausing() {
		l.resume(now)
	}
	l.mu.Unlock()
	l.wakeQueue()
}
