package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
)

// The program of the page docs/wrapper.md.

// A Client calls the API of Ledger, which allows 120 calls a minute for each account.
type Client struct {
	http     *http.Client
	url, key string
}

// NewTransport returns the Transport of all clients of a program. Base is the way to Ledger;
// nil: http.DefaultTransport.
func NewTransport(base http.RoundTripper) *weir.Transport {
	return &weir.Transport{
		Base:   base,
		Key:    weir.ByHeader("Ledger-Account"), // a lane for each
		Limits: []throttle.Limit{throttle.Within(120, time.Minute)},
	}
}

// NewClient returns the client of an account.
func NewClient(transport http.RoundTripper, account string) *Client {
	return &Client{http: &http.Client{Transport: transport}, url: "https://api.ledger.example", key: account}
}

// An Invoice is what a customer owes. Waited is how long the call was in line.
type Invoice struct {
	ID     string
	Waited time.Duration `json:"-"`
}

// Invoice fetches an invoice. It waits as long as the context allows.
func (c *Client) Invoice(ctx context.Context, id string) (*Invoice, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/invoices/"+id, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Ledger-Account", c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, rejected(err)
	}
	defer resp.Body.Close()
	report, _ := weir.ReportOf(resp)
	switch {
	case report.Signal.Throttled:
		later, _ := report.Signal.Wait()
		return nil, &LimitError{Later: later, Err: errors.New(resp.Status)}
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ledger: %s", resp.Status)
	}
	invoice := &Invoice{Waited: report.Waited}
	return invoice, json.NewDecoder(resp.Body).Decode(invoice)
}

// A LimitError says that a call was not served for lack of permits. Later is when one may be
// served; zero: unknown.
type LimitError struct {
	Later time.Duration
	Err   error // why this client rejected it, or with which status Ledger refused it
}

func (e *LimitError) Error() string { return fmt.Sprintf("ledger: no room for %v: %v", e.Later, e.Err) }
func (e *LimitError) Unwrap() error { return e.Err }

// rejected returns a LimitError if this client rejected the call. A *weir.Error is also what a lost
// connection or a cancelled context leads to.
func rejected(err error) error {
	e := new(weir.Error)
	if !errors.As(err, &e) {
		return err
	}
	for _, cause := range []error{weir.ErrDeadline, weir.ErrPaused, weir.ErrQueueFull} {
		if errors.Is(err, cause) {
			return &LimitError{Later: max(e.Wait, e.Forecast), Err: err}
		}
	}
	return err
}
