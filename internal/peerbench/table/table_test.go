package main

import (
	"strings"
	"testing"
)

func TestMediansAndRatiosOfOneRun(t *testing.T) {
	const in = `goos: linux
BenchmarkLocal/who=floor/g=1-2  100  30 ns/op  0 allocs/op
BenchmarkLocal/who=floor/g=64-2  100  20 ns/op  0 allocs/op
BenchmarkLocal/who=weir/g=1-2  100  45 ns/op  0 allocs/op
BenchmarkLocal/who=weir/g=1-2  100  90 ns/op  0 allocs/op
BenchmarkLocal/who=weir/g=1-2  100  60 ns/op  1 allocs/op
BenchmarkLocal/who=weir/g=64-2  100  50 ns/op  0 allocs/op
BenchmarkPacing/rate=1000/who=weir-2  100  1000 ns/op  99.956 %rate
PASS
`
	const want = `| Local | ns/op, 1 | x first | + first | allocs/op, 1 | ns/op, 64 | x first | + first | allocs/op, 64 |
|---|---|---|---|---|---|---|---|---|
| who=floor | 30 | 1.00 | 0 | 0 | 20 | 1.00 | 0 | 0 |
| who=weir | 60 | 2.00 | 30 | 0 | 50 | 2.50 | 30 | 0 |

| Pacing | %rate |
|---|---|
| rate=1000/who=weir | 99.96 |

`
	tables, err := read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, table := range tables {
		table.write(&out)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestBrokenLineIsAnError(t *testing.T) {
	for _, line := range []string{"BenchmarkX 1 fast ns/op", "BenchmarkX 1 2 ns/op 3"} {
		if _, err := read(strings.NewReader(line)); err == nil {
			t.Errorf("read(%q) has no error", line)
		}
	}
}
