package weir

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/backoff"
)

// A client around a Transport may repeat the Transport's retries: an SDK, a retrying client, a
// loop. Each of its tries is a call here, so 4 attempts of ours under 3 tries of theirs would be 12
// requests. A call that is an outer client's next try is therefore sent once: the 12 requests
// become 4 + 3 - 1. If it is no such try, and only looks the same, it loses its retries and nothing
// else: each call is sent.

// The bounds of a Transport's memory of failed calls.
const (
	maxOuter = 1024 // kinds of calls

	// An outer client waits no longer than this before its second try, and twice as
	// long before each later one. It is twice what known clients wait.
	outerWait    = 2 * time.Second
	maxOuterWait = 30 * time.Second
)

// outerTries count the calls that failed after several attempts. The next try
// of such a call has the same hash.
type outerTries struct {
	began time.Time
	until atomic.Int64 // end of the last expectation, since began; zero: none

	mu       sync.Mutex
	expected map[uint64]outerTry
}

// An outerTry is the expected tries of calls with one hash.
type outerTry struct {
	calls int           // failed calls without a next try yet
	wait  time.Duration // longest wait of the outer client
	until time.Duration // when that ends, since began
}

// take removes an expected try, and returns for how long it was expected; zero: the call is no such
// try.
func (o *outerTries) take(req *http.Request) time.Duration {
	now, hash := time.Since(o.began), hashOf(req)
	if until := o.until.Load(); int64(now) > until {
		o.until.CompareAndSwap(until, 0)
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	try := o.expected[hash]
	if try.calls--; try.calls > 0 {
		o.expected[hash] = try
	} else {
		delete(o.expected, hash)
	}
	if now > try.until {
		return 0
	}
	return try.wait
}

// expect remembers a call that failed, until the outer client must have retried: for wait after the
// server's requested time.
func (o *outerTries) expect(req *http.Request, wait, asked time.Duration) {
	hash, now := hashOf(req), time.Since(o.began)
	o.mu.Lock()
	defer o.mu.Unlock()
	try, known := o.expected[hash]
	if now > try.until {
		try = outerTry{}
	}
	if !known && len(o.expected) >= maxOuter {
		o.forget()
	}
	if o.expected == nil {
		o.expected = make(map[uint64]outerTry)
	}
	o.expected[hash] = outerTry{try.calls + 1, max(try.wait, wait), max(try.until, now+asked+wait)}
	o.until.Store(max(o.until.Load(), int64(now+asked+wait)))
}

// forget removes the entry that ends first. o.mu is held.
func (o *outerTries) forget() {
	var first uint64
	soonest := time.Duration(math.MaxInt64)
	for hash, try := range o.expected {
		if try.until < soonest {
			first, soonest = hash, try.until
		}
	}
	delete(o.expected, first)
}

// callMarks are header fields that name a call, and are the same in all its
// tries. The first two are unique the world over.
var callMarks = [...]string{
	"Amz-Sdk-Invocation-Id",        // AWS SDKs
	"X-Goog-Gcs-Idempotency-Token", // google.golang.org/api/storage
	"Idempotency-Key",              // draft-ietf-httpapi-idempotency-key-header; stripe-go
	"X-Idempotency-Key",
	"Range", // names a part
}

// hashOf returns a hash of the parts that all tries of a call have in common, whatever is between
// the outer client and the Transport. The credentials do not count beside a mark that is unique,
// because they may be the signature of one try.
func hashOf(req *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	add := func(s string) { h.WriteString(s); h.WriteByte(0) }
	add(cmp.Or(req.Method, http.MethodGet))
	add(strconv.FormatInt(req.ContentLength, 10))
	if u := req.URL; u != nil {
		add(u.Scheme)
		add(u.Host)
		add(u.Opaque)
		add(u.Path)
		add(u.RawPath)
		add(u.RawQuery)
	}
	unique := false
	for i, mark := range callMarks {
		v := req.Header.Get(mark)
		add(v)
		unique = unique || i < 2 && v != ""
	}
	if !unique {
		for part := range credential(req) {
			h.WriteString(part)
		}
	}
	return h.Sum64()
}

// tryOf returns the number of the try that the client reports in the header,
// from 1, and zero if it reports none. SDKs made by Stainless (of OpenAI,
// Anthropic and others) count their retries, from 0.
func tryOf(h http.Header) int {
	if v := h["X-Stainless-Retry-Count"]; len(v) > 0 {
		if n, err := strconv.Atoi(v[0]); err == nil && n >= 0 {
			return n + 1
		}
	}
	if v := h["Amz-Sdk-Request"]; len(v) > 0 { // attempt=2; max=3
		first, _, _ := strings.Cut(v[0], ";")
		if n, err := strconv.Atoi(strings.TrimPrefix(first, "attempt=")); err == nil && n >= 1 {
			return n
		}
	}
	return 0
}

// recognise removes the expected try, if the call looks like it.
func (c *call) recognise() {
	if !never(c.policy) && tryOf(c.req.Header) == 0 {
		c.expected = c.t.outer.take(c.req)
	}
}

// sendOnce gives the call a policy without retries if it is an outer client's next try.
// Most calls succeed, and need not know it.
func (c *call) sendOnce() {
	if never(c.policy) || c.expected == 0 && tryOf(c.req.Header) <= 1 {
		return
	}
	var once backoff.Policy
	if c.policy != nil {
		once = *c.policy
	}
	once.Attempts, once.MaxThrottled = 1, -1
	c.policy = &once
}

// expectNext lets the call's next try be recognised, if the call failed. A first
// call that was sent once is not remembered, because it multiplies nothing.
func (c *call) expectNext() {
	switch c.verdict {
	case backoff.ReasonFinal:
		return
	case "":
		if c.sent > 0 {
			return // it succeeded
		}
	case backoff.ReasonCanceled:
		if !errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
			return // the caller has given up
		}
	}
	if (c.sent > 1 || c.expected > 0) && tryOf(c.req.Header) == 0 {
		c.t.outer.expect(c.req, min(max(2*c.expected, outerWait), maxOuterWait), min(c.asked, c.t.maxPause()))
	}
}
