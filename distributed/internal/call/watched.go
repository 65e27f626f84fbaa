package call

import (
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/store"
)

// A watched passes calls to Redis on to the watch of a limiter, or of slots.
type watched struct {
	By atomic.Pointer[store.Watch] // nil: no watch
}

// Watch implements [store.Limiter] and [store.Flights].
func (w *watched) Watch(by store.Watch) { w.By.Store(&by) }

func (w *watched) Watcher() *watched { return w }

// called passes on a call that has ended, with the cause of a failure.
func (w *watched) called(operation store.Operation, began time.Time, took time.Duration, cause string) {
	if by := w.By.Load(); by != nil && by.Called != nil {
		by.Called(store.Call{Operation: operation, Began: began, Took: took, Cause: cause})
	}
}
