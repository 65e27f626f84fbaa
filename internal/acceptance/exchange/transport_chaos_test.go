package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A chaos is one random schedule of arrivals, cancels and faults. The judge is
// the vendor's own record.
type chaos struct {
	*harness.Rig
	random *rand.Rand
	limit  throttle.Limit
	log    harness.SpanLog
	calls  []*chaosCall
	hidden atomic.Int64 // sends that net/http added
}

// A chaosCall is one call of a schedule, and its outcome.
type chaosCall struct {
	id, method string
	keyed      bool
	patience   time.Duration
	body       *harness.CountedBody // nil: none
	began      time.Duration
	trace      string // of its spans
	sends      atomic.Int64
	answer     harness.Answer
}

const (
	chaosCalls   = 150
	chaosLength  = 30 * time.Second
	chaosToldFor = time.Second // every refusal asks for it
)

func newChaos(t *testing.T, seed uint64) *chaos {
	random := rand.New(rand.NewPCG(seed, 2))
	c := &chaos{
		random: random,
		log:    harness.NewSpanLog(),
		limit:  throttle.TokenBucket(2+random.IntN(12), time.Second, 1+random.IntN(5)),
	}
	c.Rig = harness.PipeRig(t, &testserver.Vendor{Service: time.Duration(random.IntN(200)) * time.Millisecond, Faults: c.faults()}, &weir.Transport{
		Limits:         []throttle.Limit{c.limit},
		TracerProvider: c.log,
		Retry:          &backoff.Policy{AttemptTimeout: 2 * time.Second, BufferBody: 1 << 10, Delay: backoff.FullJitter(time.Duration(1+random.IntN(1000))*time.Millisecond, backoff.DefaultCap)},
		Line:           weir.Line{MaxWaiting: 20 + random.IntN(200)},
	})
	c.Transport.Base = c.count(c.Transport.Base)
	return c
}

// faults returns one to five windows of trouble.
func (c *chaos) faults() []testserver.Fault {
	kinds := []testserver.Fault{
		{Do: testserver.Answer, Header: harness.Hints("1")},
		{Do: testserver.Answer, Status: 503, Header: harness.Hints("1")},
		{Do: testserver.Answer, Status: 500, Size: 40_000},
		{Do: testserver.Answer, Status: 502, Delay: 300 * time.Millisecond},
		{Do: testserver.ResetEarly},
		{Do: testserver.CloseReused},
		{Do: testserver.Hang},
		{Do: testserver.SlowBody, Size: 16_000, Delay: 50 * time.Millisecond},
		{Do: testserver.SlowBody, Status: 500, Size: 16_000, Delay: time.Hour},
		{Do: testserver.ResetMidBody, Size: 10_000},
		{Do: testserver.SlowHeaders, Delay: 3 * time.Second},
		{Do: testserver.CloseAfter},
	}
	var faults []testserver.Fault
	for i := range 1 + c.random.IntN(5) {
		f := kinds[c.random.IntN(len(kinds))]
		if i == 0 {
			f = kinds[0] // refusals are the main case
		}
		f.From = time.Duration(c.random.Int64N(int64(chaosLength)))
		f.Until = f.From + time.Duration(c.random.Int64N(int64(5*time.Second)))
		f.Every = c.random.IntN(4)
		faults = append(faults, f)
	}
	return faults
}

type chaosKey struct{}

// count counts the sends of each call, by us and by net/http.
func (c *chaos) count(base http.RoundTripper) http.RoundTripper {
	return harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
		call := req.Context().Value(chaosKey{}).(*chaosCall)
		call.sends.Add(1)
		wrote := 0
		trace := &httptrace.ClientTrace{WroteHeaders: func() {
			if wrote++; wrote > 1 {
				call.sends.Add(1)
				c.hidden.Add(1)
			}
		}}
		return base.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	})
}

// run sends the calls at random instants and waits for the last answer.
func (c *chaos) run() {
	var wg sync.WaitGroup
	for i := range chaosCalls {
		call := &chaosCall{id: strconv.Itoa(i), method: "GET", began: c.Now(), patience: time.Duration(c.random.Int64N(int64(20 * time.Second)))}
		switch c.random.IntN(4) {
		case 0:
			call.method, call.body = "PUT", harness.NewCountedBody("body of "+call.id)
		case 1:
			call.method, call.body, call.keyed = "POST", harness.NewCountedBody("body of "+call.id), c.random.IntN(2) == 0
		}
		byDeadline := c.random.IntN(2) == 0
		c.calls = append(c.calls, call)
		wg.Go(func() { c.send(call, byDeadline) })
		time.Sleep(time.Duration(c.random.Int64N(int64(2 * chaosLength / chaosCalls))))
	}
	wg.Wait()
}

func (c *chaos) send(call *chaosCall, byDeadline bool) {
	ctx, span := c.log.Tracer("chaos").Start(context.WithValue(c.Context(), chaosKey{}, call), call.id)
	defer span.End()
	call.trace = span.SpanContext().TraceID().String()
	ctx, cancel := context.WithCancel(ctx)
	if byDeadline {
		ctx, cancel = context.WithTimeout(ctx, call.patience)
	} else {
		time.AfterFunc(call.patience, cancel)
	}
	defer cancel()
	req := c.Request(ctx, call.id).WithContext(ctx)
	req.Method = call.method
	if call.body != nil {
		req.Body = call.body
	}
	if call.keyed {
		req.Header.Set("Idempotency-Key", call.id)
	}
	call.answer = c.Do(req)
	call.answer.At = c.Now()
}

// judge checks the outcome against the rules.
func (c *chaos) judge() {
	arrivals := c.Vendor.Arrivals()
	c.judgeBound(arrivals)
	c.judgePauses(arrivals)
	byID := make(map[string]testserver.Arrivals)
	for _, a := range arrivals {
		byID[a.ID] = append(byID[a.ID], a)
	}
	for _, call := range c.calls {
		c.judgeCall(call, byID[call.id])
	}
	for _, lane := range c.Transport.Snapshot() {
		if lane.Requests != 0 || lane.Waiting != 0 {
			c.Errorf("lane at rest = %+v, want it empty", lane)
		}
	}
}

// judgeBound: at most the limit's burst and two permits of tolerance. Sends of net/http itself come
// on top, and are paid for later.
func (c *chaos) judgeBound(arrivals testserver.Arrivals) {
	bound := c.limit.Burst + 2 + int(c.hidden.Load())
	if got := arrivals.BurstAt(c.limit.Permits, c.limit.Per); got > bound {
		c.Errorf("burst = %d with limit %v, want %d at most", got, c.limit, bound)
	}
}

// judgePauses: nothing is sent before a reported time, except by net/http itself, and by calls that
// are delayed alone.
func (c *chaos) judgePauses(arrivals testserver.Arrivals) {
	if c.hidden.Load() > 0 {
		return
	}
	refused := make(map[string]bool)
	for i, a := range arrivals {
		if a.Status != http.StatusTooManyRequests || refused[a.ID] {
			continue
		}
		refused[a.ID] = true
		for _, b := range arrivals[i+1:] {
			if b.At > a.At && b.At < a.At+chaosToldFor {
				c.Errorf("%s sent at %v, refused at %v for %v", b.ID, b.At, a.At, chaosToldFor)
			}
		}
	}
}

// judgeCall: one response or one typed error, in time. A second send was allowed and has a recorded
// retry. The body is closed once.
func (c *chaos) judgeCall(call *chaosCall, arrivals testserver.Arrivals) {
	var ours *weir.Error
	if got := call.answer; got.Status == 0 && !errors.As(got.Err, &ours) {
		c.Errorf("call %s = %+v, want a response or *weir.Error", call.id, got)
	}
	if end := call.began + call.patience; call.answer.At > end {
		c.Errorf("call %s ended at %v, want by %v", call.id, call.answer.At, end)
	}
	if sends := int(call.sends.Load()); len(arrivals) > sends {
		c.Errorf("call %s arrived %d times, sent %d times", call.id, len(arrivals), sends)
	}
	if call.body != nil && call.body.Closes.Load() != 1 {
		c.Errorf("closes of the body of %s = %d, want 1", call.id, call.body.Closes.Load())
	}
	if call.method == "POST" && !call.keyed && len(arrivals) > 1 {
		for _, a := range arrivals[:len(arrivals)-1] {
			if a.Status != http.StatusTooManyRequests {
				c.Errorf("POST %s was sent again after %d", call.id, a.Status)
			}
		}
	}
	if recorded := c.retries(call); len(arrivals) > 1+recorded+int(c.hidden.Load()) {
		c.Errorf("call %s arrived %d times with %d recorded retries", call.id, len(arrivals), recorded)
	}
}

// retries returns how many retries the spans of a call show.
func (c *chaos) retries(call *chaosCall) int {
	var counts []any
	for _, s := range c.log.Recorder.Ended() {
		if s.SpanContext().TraceID().String() != call.trace {
			continue
		}
		if n, ok := harness.Attributes(s)["http.request.resend_count"]; ok && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	return len(counts)
}

func TestChaosKeepsEveryRule(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChaos(t, seed)
				c.run()
				c.judge()
			})
		})
	}
}
