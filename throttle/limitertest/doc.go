// Package limitertest tests the rules of every [throttle.Limiter], for those of this module and for
// stores of your own.
//
//	func TestDecisions(t *testing.T) {
//		limitertest.Suite{Make: mine, Histories: 300}.Decisions(t)
//	}
//
//	func TestWaiting(t *testing.T) {
//		limitertest.Waiting{Store: func(*testing.T) throttle.Store { return new(myStore) }}.Run(t)
//	}
//
// [Suite.Decisions] tests what a limiter decides. The test gives the instants, so a
// limiter in this process and one in a remote store with coarser instants run the same
// cases. Each case is named for the rule it holds. An oracle that shares no arithmetic
// with the limiters, a log of every departure searched by brute force, judges random
// histories.
//
// [Waiting] tests what callers see in a queue over the limiters of a store, in
// bubbles, with exact instants.
package limitertest
