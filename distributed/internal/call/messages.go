package call

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
)

// A message of a namespace names a lane that another replica has paused, and for how long.
// No time means that an operator has ended the pause. It stops the replicas that hold permits.
// A replica that misses it learns of the pause with its next call, so only speed depends on it.

// subscribe begins to receive messages, once.
func (k *Link) subscribe() {
	k.subscription.Do(func() {
		for _, client := range k.Client.Publishers() {
			k.listening.Go(func() {
				for k.stopped.Err() == nil {
					k.listen(client)
				}
			})
		}
	})
}

const (
	silence = 30 * time.Second       // after it the subscription is renewed: the connection may be dead
	respite = 500 * time.Millisecond // before the next attempt
)

// listen receives messages until the connection fails or is silent for long.
func (k *Link) listen(client redis.UniversalClient) {
	sub := client.Subscribe(k.stopped)
	defer func() { _ = sub.Close() }()
	began := time.Now()
	layouts := script.LayoutChannel(k.hub.Namespace)
	if err := sub.Subscribe(k.stopped, k.hub.Channel, layouts); err != nil {
		k.retreat(conn.CauseOf(err))
		return
	}
	// Close waits while a connection is being made. By now one exists, and closing it ends a read
	// that would last for the silence.
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
func (k *Link) announce(client redis.UniversalClient) {
	n := k.node("")
	if shard, ok := client.(*redis.Client); ok && client != k.Client.Redis {
		n = k.node(shard.Options().Addr)
	}
	k.hub.Mu.Lock() // no call begins once the hub waits for the last ones
	defer k.hub.Mu.Unlock()
	if !k.hub.closed {
		n.Enter(announcement{link: k, client: client})
	}
}

// An announcement is a call that publishes the layout. It is for no lane, so it loses no node.
type announcement struct {
	conn.Caller
	link   *Link
	client redis.UniversalClient
}

func (a announcement) Call() {
	k, began := a.link, time.Now()
	ctx, cancel := context.WithTimeout(k.stopped, k.hub.Set.FirstDeadline)
	defer cancel()
	err := conn.Publish(ctx, a.client, script.LayoutChannel(k.hub.Namespace), k.hub.Layout)
	if conn.CauseOf(err) == "noperm" {
		k.lacksGrant(a.client, began, err)
	}
}

// retreat waits before the next subscription. Without the grant it waits long, because an operator
// must act.
func (k *Link) retreat(cause string) {
	d := respite
	if conn.Lasting(cause) {
		d = time.Minute
	}
	select {
	case <-time.After(d):
	case <-k.stopped.Done():
	}
}

// SlotsMessage begins the messages that ask replicas of a lane to call. No lane has that name.
const SlotsMessage = "/flights"

// deliver hands a message to what is open here for its lane. The script's messages to
// slots begin with a word that no lane has.
func (k *Link) deliver(message string) {
	lane, rest, _ := strings.Cut(message, " ")
	if lane == SlotsMessage {
		slots, names, _ := strings.Cut(rest, " ")
		lane, rest = lane+slots, names
	}
	k.hub.Mu.Lock()
	parts := slices.Clone(k.hub.open[lane])
	k.hub.Mu.Unlock()
	for _, p := range parts {
		p.Deliver(rest)
	}
}
