package telemetry

import "github.com/weirgo/weir/throttle"

// A Store says who enforces a lane's limits.
type Store int32

// The stores.
const (
	StoreLocal    Store = iota // this process alone
	StoreShared                // a store, for several processes
	StoreFallback              // this process, while the store does not answer

	stores = iota
)

// String returns the word for spans and metrics.
func (s Store) String() string { return [stores]string{"local", "shared", "fallback"}[s] }

// StoreOf returns who enforces the limits of a limiter whose store is in state
// s. A limiter without a store has nil.
func StoreOf(s *throttle.StoreState) Store {
	switch {
	case s == nil:
		return StoreLocal
	case s.Lost:
		return StoreFallback
	default:
		return StoreShared
	}
}
