package sdktest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/weirtest"
)

// ledger returns a vendor like Ledger.
func ledger(t *testing.T) *weirtest.Vendor {
	vendor := weirtest.New(t, weirtest.FixedWindow(120, time.Minute))
	vendor.Dialect = weirtest.Named("x-ratelimit")
	vendor.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, `{"ID": %q}`, strings.TrimPrefix(req.URL.Path, "/invoices/"))
	})
	return vendor
}

func TestInvoicesKeepTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // three minutes take no time
		vendor := ledger(t)
		client := NewClient(NewTransport(vendor.Transport()), "acme")
		var calls sync.WaitGroup
		for i := range 300 {
			calls.Go(func() {
				if invoice, err := client.Invoice(t.Context(), fmt.Sprint(i)); err != nil || invoice.ID != fmt.Sprint(i) {
					t.Errorf("Invoice(%d) = %v, %v", i, invoice, err)
				}
			})
		}
		calls.Wait()
		vendor.Check(t)
	})
}

// A rejected caller sees why, and when to call again: a deadline, a refusal, a lost connection.
func TestClientSaysWhyACallWasNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := ledger(t)
		client := NewClient(NewTransport(vendor.Transport()), "acme")
		for i := range 11 {
			invoice, err := client.Invoice(t.Context(), fmt.Sprint(i))
			if want := i == 10; err != nil || (invoice.Waited > 0) != want {
				t.Fatalf("call %d = %+v, %v, want a wait: %v", i, invoice, err, want)
			}
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := client.Invoice(soon, "late")
		if e := new(LimitError); !errors.As(err, &e) || !errors.Is(err, weir.ErrDeadline) || e.Later < time.Millisecond {
			t.Errorf("before its permit: %v", err)
		}

		vendor = ledger(t)
		vendor.Faults = []weirtest.Fault{{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}}}
		client = NewClient(NewTransport(vendor.Transport()), "acme")
		_, err = client.Invoice(t.Context(), "refused")
		if e := new(LimitError); !errors.As(err, &e) || e.Later != 10*time.Minute {
			t.Errorf("refused for ten minutes: %v", err)
		}
		_, err = client.Invoice(t.Context(), "paused")
		if e := new(LimitError); !errors.As(err, &e) || !errors.Is(err, weir.ErrPaused) {
			t.Errorf("in the pause: %v", err)
		}

		gone := NewClient(NewTransport(lost{}), "acme")
		if _, err = gone.Invoice(t.Context(), "lost"); !errors.Is(err, errLost) || errors.As(err, new(*LimitError)) {
			t.Errorf("without a connection: %v", err)
		}
	})
}

var errLost = errors.New("lost")

type lost struct{}

func (lost) RoundTrip(*http.Request) (*http.Response, error) { return nil, errLost }
