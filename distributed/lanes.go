package distributed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// A Lane is what Redis holds of one lane, for operators.
type Lane struct {
	// Key is the key of the limiter. The end of one that takes more than 200 bytes in Redis is a
	// hash. Each control character, space, %, {, } and / takes three of them there.
	Key string

	// Limits are in force, in the order of their names, which replicas share.
	Limits []throttle.Limit

	// Paused is how long the pause will last that the vendor asked for. Zero: the lane is
	// not paused.
	Paused time.Duration

	// Replicas is how many processes have called for the lane in the last five to ten
	// seconds. Zero: none.
	Replicas int

	// Learned is how many calls per second the lane lets out by what its replicas have
	// learned together. Zero: no rate.
	Learned float64

	// Slots is how many calls replicas may have in flight now, and MaxSlots the most for all of
	// them, as configured or learned. Zero: no leases, or no shared bound on calls in flight.
	Slots, MaxSlots int
}

// Lanes returns what Redis holds of the lanes of a namespace, in the order of their keys. It
// looks for them with SCAN, on every master or shard, and changes nothing. It needs the
// commands SCAN, TIME and HGETALL. Of a lane that learns it reads up to 128 KiB.
//
// The error joins errors of Redis, and one for each lane with an invalid state; the other lanes are
// returned.
func Lanes(ctx context.Context, rdb redis.UniversalClient, namespace string) ([]Lane, error) {
	var mu sync.Mutex
	var lanes []Lane
	var errs []error
	look := func(ctx context.Context, node redis.UniversalClient) error {
		found, err := lanesAt(ctx, node, namespace)
		mu.Lock()
		defer mu.Unlock()
		lanes, errs = append(lanes, found...), append(errs, err)
		return nil
	}
	of := func(ctx context.Context, node *redis.Client) error { return look(ctx, node) }
	var err error
	switch rdb := rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, of)
	case *redis.Ring:
		err = rdb.ForEachShard(ctx, of)
	default:
		err = look(ctx, rdb)
	}
	slices.SortFunc(lanes, func(a, b Lane) int { return strings.Compare(a.Key, b.Key) })
	return lanes, errors.Join(append(errs, err)...)
}

// lanesAt returns the lanes of one node.
func lanesAt(ctx context.Context, node redis.UniversalClient, namespace string) (lanes []Lane, err error) {
	now, err := node.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{} // SCAN may return a key twice
	var errs []error
	for cursor := uint64(0); ; {
		var keys []string
		if keys, cursor, err = node.Scan(ctx, cursor, script.Pattern(namespace), 1000).Result(); err != nil {
			return lanes, err
		}
		for _, key := range keys {
			name, ok := script.LaneOf(namespace, key)
			if !ok || seen[key] {
				continue
			}
			seen[key] = true
			l, err := laneAt(ctx, node, key, now)
			switch {
			case errors.Is(err, redis.Nil): // it has expired meanwhile
			case err != nil:
				errs = append(errs, fmt.Errorf("lane %q: %w", name, err))
			default:
				l.Key = name
				lanes = append(lanes, l)
			}
		}
		if cursor == 0 {
			return lanes, errors.Join(errs...)
		}
	}
}

// laneAt reads the lane of a key. The error matches redis.Nil if there is none.
func laneAt(ctx context.Context, node redis.UniversalClient, key string, now time.Time) (l Lane, err error) {
	pipe := node.Pipeline()
	lane, flights := pipe.HGetAll(ctx, key), pipe.HGetAll(ctx, script.FlightsKey(key))
	if _, err := pipe.Exec(ctx); err != nil {
		return l, err
	}
	if len(lane.Val()) == 0 {
		return l, redis.Nil
	}
	s, err := script.ReadState(lane.Val(), now)
	if err != nil {
		return l, err
	}
	l = Lane{Limits: s.Limits, Paused: s.Paused, Replicas: s.Replicas}
	if s.Interval > 0 {
		l.Learned = 1 / s.Interval.Seconds()
	}
	l.Slots, l.MaxSlots = script.ReadFlights(flights.Val(), now)
	return l, nil
}
