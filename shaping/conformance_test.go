package shaping_test

import (
	"testing"

	"github.com/weirgo/weir/internal/fakestore"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

func TestWaitingOverLocal(t *testing.T) {
	limitertest.Waiting(t, func() throttle.Store { return throttle.Local{} })
}

func TestWaitingOverARemoteStore(t *testing.T) {
	limitertest.Waiting(t, func() throttle.Store { return fakestore.NewServer(0).Store() })
}
