package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var someSight = sight{
	at: 3 * time.Second, length: 20 * time.Second, limit: 100,
	replicas: []replicaSight{{50, 140, "shared"}, {25, 80, "lost: timeout"}, {0, 31, "killed"}, {20, 49, "shared"}},
	lately:   95, total: 300, worst: 109, bound: 112, refused: 1,
}

func TestLines(t *testing.T) {
	var got bytes.Buffer
	newDisplay(&got, 4).show(someSight)
	const want = "  3.0 s   95/s of 100/s  worst second 109 of 112  1 429s  each 50 25 0 20  2 shared, 1 lost: timeout, 1 killed\n"
	if got.String() != want {
		t.Errorf("line %q, want %q", &got, want)
	}
}

func TestLiveLines(t *testing.T) {
	l := new(live)
	got := strings.Join(l.picture(someSight, 64), "\n")
	const want = `  1 ████████████████   50/s     140  shared
  2 ████████           25/s      80  lost: timeout
  3                     0/s      31  killed
  4 ██████▍            20/s      49  shared
all ███████████████▏   95/s     300
3.0 s of 20s   95/s of 100/s  worst second 109 of 112  1 429s`
	if got != want {
		t.Errorf("lines:\n%s\nwant:\n%s", got, want)
	}
}

func TestLiveLinesAreNarrowerThanTheTerminal(t *testing.T) {
	l := new(live)
	for columns := 60; columns < 200; columns++ {
		for _, line := range l.picture(someSight, columns) {
			if n := utf8.RuneCountInString(line); n >= columns {
				t.Errorf("%d of %d columns: %q", n, columns, line)
			}
		}
	}
}
