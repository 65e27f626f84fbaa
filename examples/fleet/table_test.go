package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// twoReplicas is a run of 2 s in which replica 1 sent 30 requests and replica 2
// ten, one of which was refused.
func twoReplicas() result {
	r := result{
		room:      roomFor(throttle.TokenBucket(10, time.Second, 5), 2, nil),
		length:    2 * time.Second,
		rows:      []row{{sent: 30, starts: 1, calls: 11}, {sent: 10, refused: 1, starts: 2, calls: 3}},
		scheduled: 1,
		tally:     tally{calls: 14, alone: 4, failed: 2, cause: "answer 500"},
		happened: []span{
			{event{kind: killReplica, replica: 2}, 500 * time.Millisecond, 1500 * time.Millisecond},
			{event{kind: flushRedis}, 510 * time.Millisecond, 510 * time.Millisecond},
		},
	}
	for i := range 40 {
		a := testserver.Arrival{At: time.Duration(i) * 50 * time.Millisecond, ID: "1", Status: 200}
		if i%4 == 3 {
			a.ID = "2"
		}
		if i == 7 {
			a.Status = 429
		}
		r.arrivals = append(r.arrivals, a)
	}
	return r
}

func TestTable(t *testing.T) {
	const want = `
  replica  sent  share  429s  calls to Redis  starts
        1    30  75.0%     0              11       1
        2    10  25.0%     1               3       2
      all    40            1              14       3

    rate   ideal  rate/ideal  worst second  bound  429s  calls to Redis per request
  20.0/s  12.5/s        1.60            20     16     1                        0.35
ideal: the rate, and the burst once; worst second: most requests in any second
1 of the 429s by the schedule
4 permits spent without Redis, by each replica at its part of half the rate
2 calls failed; the first of a replica ended with: answer 500
`
	var got bytes.Buffer
	writeTable(&got, twoReplicas())
	if got.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", &got, want)
	}
}

func TestTableOfNothing(t *testing.T) {
	const want = `
  replica  sent  share  429s  calls to Redis  starts
        1     0      -     0               0       1
      all     0            0               0       1

  rate  ideal  rate/ideal  worst second  bound  429s  calls to Redis per request
     -      -        0.00             0    112     0                           -
ideal: the rate, and the burst once; worst second: most requests in any second
`
	var got bytes.Buffer
	writeTable(&got, result{room: roomFor(throttle.TokenBucket(100, time.Second, 10), 1, nil), rows: []row{{starts: 1}}})
	if got.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", &got, want)
	}
}
