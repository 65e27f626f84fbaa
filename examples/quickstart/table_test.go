package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestTable(t *testing.T) {
	results := []result{
		{
			client: "plain", asked: 110, failed: 2, cause: "429 Too Many Requests", wall: 3 * time.Second,
			limit: throttle.TokenBucket(50, time.Second, 10), latency: latencies(110),
			arrivals: []arrival{{}, {refused: true}, {}},
		},
		{client: "limited", asked: 110, limit: throttle.TokenBucket(50, time.Second, 10)},
	}
	const want = `
   client  calls  failed  sent  429s    wall   ideal  wall/ideal    p50     p99
    plain    110       2     3     1  3.00 s  2.00 s        1.50  55 ms  109 ms
  limited      0       0     0     0  0.00 s  0.00 s           -   0 ms    0 ms
sent: with the tries after a 429; p50, p99: latency of a call, failed or not
plain: the first of 2 failed calls ended with: 429 Too Many Requests
limited: interrupted, 110 of 110 calls not made or cut off
`
	var got bytes.Buffer
	writeTable(&got, results)
	if got.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", &got, want)
	}
}

// latencies returns 1 ms to n ms.
func latencies(n int) []time.Duration {
	ds := make([]time.Duration, n)
	for i := range ds {
		ds[i] = time.Duration(i+1) * time.Millisecond
	}
	return ds
}

func TestPercentile(t *testing.T) {
	for _, tt := range []struct {
		n, p int
		want time.Duration
	}{
		{0, 50, 0},
		{1, 50, time.Millisecond},
		{1, 99, time.Millisecond},
		{2, 50, time.Millisecond},
		{100, 99, 99 * time.Millisecond},
		{101, 99, 100 * time.Millisecond},
	} {
		if got := percentile(latencies(tt.n), tt.p); got != tt.want {
			t.Errorf("percentile of %d at %d = %v, want %v", tt.n, tt.p, got, tt.want)
		}
	}
}
