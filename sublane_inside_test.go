package weir

import (
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir/headers"
)

// Two credentials whose first calls come at the same time are two.
func TestFirstCallsOfTwoCredentialsAtOnceShowBoth(t *testing.T) {
	transport := &Transport{Dialect: &headers.Dialect{Scope: headers.ScopeCredential}}
	if err := transport.Resume("lane"); err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	l, err := transport.enter("lane")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Leave(nil)
	var calls [2]call
	for i, credential := range []string{"a", "b"} {
		calls[i] = call{t: transport, lane: l, req: &http.Request{URL: new(url.URL), Header: http.Header{"Authorization": {credential}}}}
	}
	met := &observerOf(l).met
	for range 20_000 {
		met.last.Store(0)
		met.changed.Store(0)
		var ready atomic.Int32
		var both sync.WaitGroup
		for i := range calls {
			both.Go(func() {
				ready.Add(1)
				for spin := 0; ready.Load() < 2 && spin < 10_000; spin++ { // closer together than by a channel
				}
				calls[i].meet()
			})
		}
		both.Wait()
		if calls[0].oneCredential() {
			t.Fatal("after calls of two credentials oneCredential = true, want false")
		}
	}
	if allocated := testing.AllocsPerRun(100, func() { calls[0].meet(); calls[1].meet() }); allocated > 0 {
		t.Errorf("to note two credentials takes %v allocations, want none", allocated)
	}
}
