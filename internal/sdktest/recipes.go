package sdktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"

	"github.com/weirgo/weir"
)

// The programs of the pages docs/snooze.md and docs/router.md.

// patience is how long a worker waits in line for a call. It is what a worker may be idle
// for, against the cost of a job that is fetched once more.
const patience = 2 * time.Second

// snoozeFor returns for how long a job should come back later. Zero: it should call now.
// The error says that no wait helps.
func snoozeFor(transport *weir.Transport, req *http.Request) (time.Duration, error) {
	f, err := transport.Forecast(req)
	switch {
	case errors.Is(err, weir.ErrExceedsBurst):
		return 0, err
	case err == nil && f.Expected <= patience:
		return 0, nil
	}
	return max(f.Expected, time.Second), nil // calls in flight have no time
}

// call sends the request, and says whether the job is done.
func call(transport *weir.Transport, req *http.Request) error {
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("vendor: %s", resp.Status)
	}
	return nil
}

// A snoozed error asks the queue for the job again after a time.
type snoozed struct{ wait time.Duration }

func (s snoozed) Error() string { return fmt.Sprintf("no room for %v", s.wait) }

// asynqHandler handles tasks whose payload is a URL.
func asynqHandler(transport *weir.Transport) asynq.HandlerFunc {
	return func(ctx context.Context, task *asynq.Task) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(task.Payload()), nil)
		if err != nil {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		}
		switch wait, err := snoozeFor(transport, req); {
		case err != nil:
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		case wait > 0:
			return snoozed{wait}
		}
		return call(transport, req)
	}
}

// asynqConfig comes back when the forecast says so, and counts no snooze as a failure.
func asynqConfig() asynq.Config {
	return asynq.Config{
		RetryDelayFunc: func(n int, err error, task *asynq.Task) time.Duration {
			var s snoozed
			if errors.As(err, &s) {
				return s.wait
			}
			return asynq.DefaultRetryDelayFunc(n, err, task)
		},
		IsFailure: func(err error) bool {
			return !errors.As(err, new(snoozed))
		},
	}
}

// Notify are the arguments of a job.
type Notify struct {
	URL string `json:"url"`
}

// Kind implements [river.JobArgs].
func (Notify) Kind() string { return "notify" }

// A Notifier works such jobs.
type Notifier struct {
	river.WorkerDefaults[Notify]
	transport *weir.Transport
}

// Work implements [river.Worker].
func (n *Notifier) Work(ctx context.Context, job *river.Job[Notify]) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Args.URL, nil)
	if err != nil {
		return river.JobCancel(err)
	}
	switch wait, err := snoozeFor(n.transport, req); {
	case err != nil:
		return river.JobCancel(err)
	case wait > 0:
		return river.JobSnooze(wait)
	}
	return call(n.transport, req)
}

// sendSoonest sends the call to the vendor that is expected to take it soonest. The requests
// are the same call to one vendor each. If no vendor takes it, the error is the first one's.
func sendSoonest(transport *weir.Transport, calls ...*http.Request) (*http.Response, error) {
	best, soonest := calls[0], time.Duration(math.MaxInt64)
	for _, req := range calls {
		if f, err := transport.Forecast(req); err == nil && f.Expected < soonest {
			best, soonest = req, f.Expected
		}
	}
	return transport.RoundTrip(best)
}
