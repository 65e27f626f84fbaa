package main

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// reportEvery is the time between two reports of a replica.
const reportEvery = 200 * time.Millisecond

// A report is a replica's own figures. The vendor counts its calls.
type report struct {
	Failed int           // calls
	Cause  string        // of the first failure
	Paused time.Duration // that the vendor asked for, from now
	Store  throttle.StoreState
}

// report writes a line to the parent. If the parent is gone, the end of stdin shows it.
func (l *load) report() {
	l.mu.Lock()
	r := report{Failed: l.failed, Cause: l.cause}
	l.mu.Unlock()
	for _, lane := range l.transport.Snapshot() { // of the one vendor
		r.Paused = lane.Paused
		if lane.Store != nil {
			r.Store = *lane.Store
		}
	}
	_ = l.out.Encode(r)
}
