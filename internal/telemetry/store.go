package telemetry

import "github.com/weirgo/weir/throttle"

// A Store says where a lane's limits are enforced.
type Store int32

// The stores.
const (
	StoreLocal    Store = iota // this process alone
	StoreShared                // a store that several processes share
	StoreFallback              // this process, while the store does not answer

	stores = iota
)

// String returns the word for spans and metrics.
func (s Store) String() string { return [stores]string{"local", "shared", "fallback"}[s] }

// StoreOf returns where limits are enforced whose store is in that state; nil is
// the state of a limiter without a store.
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
