package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTimesAreRead(t *testing.T) {
	want := []time.Time{
		time.Date(2026, 11, 20, 12, 0, 0, 250_000_000, time.UTC),
		time.Date(2026, 11, 20, 12, 0, 1, 0, time.UTC),
	}
	for name, file := range map[string]struct {
		text string
		source
	}{
		"RFC 3339":            {text: "2026-11-20T12:00:00.25Z\n2026-11-20T13:00:01+01:00\n"},
		"out of order":        {text: "2026-11-20T12:00:01Z\n2026-11-20T12:00:00.25Z\n"},
		"without a zone":      {text: "2026-11-20 12:00:00.25\n2026-11-20T12:00:01\n"},
		"a name":              {text: "id,at\n7,2026-11-20T12:00:00.25Z\n8,2026-11-20T12:00:01Z\n", source: source{column: "at"}},
		"a number":            {text: "7,2026-11-20T12:00:00.25Z\n8,2026-11-20T12:00:01Z\n", source: source{column: "2"}},
		"seconds":             {text: "at\n1795176000.25\n1795176001\n"},
		"milliseconds":        {text: "1795176000250\n1795176001000\n"},
		"microseconds":        {text: "1795176000250000\n1795176001000000\n"},
		"nanoseconds":         {text: "1795176000250000000\n1795176001000000000\n"},
		"a byte order mark":   {text: "\ufeffat\n1795176000.25\n1795176001\n", source: source{column: "at"}},
		"a mark and no names": {text: "\ufeff1795176000.25\n1795176001\n"},
		"parts of a thousand": {text: "1795176000249.9999\n1795176001000.0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file.path = "-"
			got, err := file.read(strings.NewReader(file.text))
			if err != nil || len(got) != 2 {
				t.Fatalf("read = %v, %v, want two times", got, err)
			}
			for i := range want {
				if got[i].Sub(want[i]).Abs() > time.Microsecond {
					t.Errorf("time %d = %v, want %v", i, got[i], want[i])
				}
			}
		})
	}
}

func TestAccessLogIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	lines := `127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326

127.0.0.1 - - [10/Oct/2000:13:55:37 -0700] "GET /x HTTP/1.0" 200 23 "http://a.example/" "Mozilla/4.08 [en]"
`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := source{path: path}.read(nil)
	first := time.Date(2000, 10, 10, 20, 55, 36, 0, time.UTC)
	if err != nil || len(got) != 2 || !got[0].Equal(first) || got[1].Sub(first) != time.Second {
		t.Errorf("read = %v, %v, want %v and a second later", got, err, first)
	}
}

// An error names the file, the line and the value.
func TestWhatIsNoTimeIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "-: no times",
		"at\n":                                  "-: no times",
		"1795176000\nsoon\n":                    `-: line 2: "soon" is not a time`,
		"1795176000\n-5\n":                      `-: line 2: "-5" is not a time`,
		"a [10/Oct/2000:13:55:36 -0700] b\nc\n": `-: line 2: no time such as`,
		"1795176000\n\"\n":                      `line 2`,
		"1795176000\n5.5e3\n":                   `-: line 2: "5.5e3" is not a time`,
		"2026-11-20T12:00\n1795176000\n":        `-: line 1: "2026-11-20T12:00" is not a time`,
		"at\n1600-01-01T00:00:00Z\n":            `-: line 2: 1600-01-01T00:00:00Z is not between 1970 and 2200`,
		"2300-01-01T00:00:00Z\n":                `-: line 1: 2300-01-01T00:00:00Z is not between 1970 and 2200`,
		"9223372036854775807\n":                 `-: line 1: 2262-04-11T23:47:16Z is not between`,
		"a [10/Oct/9999:13:55:36 +0000] b\n":    `-: line 1: 9999-10-10T13:55:36Z is not between`,
		"a [10/Oct/2000:13:55:36 -0700] b\n" + strings.Repeat("c", 2<<20): `-: line 2: bufio.Scanner: token too long`,
	} {
		if got, err := (source{path: "-"}).read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read(%q) = %v, %v, want %q", text, got, err, want)
		}
	}
	if _, err := (source{path: "-", column: "when"}).read(strings.NewReader("id,at\n1,2\n")); err == nil || !strings.Contains(err.Error(), `no column "when" in ["id" "at"]`) {
		t.Errorf("read = %v, want that there is no such column", err)
	}
}

func TestWholeSecondsAreSpread(t *testing.T) {
	at := time.Unix(1795176000, 0)
	times := []time.Time{at, at, at, at, at.Add(time.Second)}
	if !spread(times) {
		t.Error("spread = false, want true of whole seconds")
	}
	for i, want := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond, time.Second} {
		if got := times[i].Sub(at); got != want {
			t.Errorf("call %d came after %v, want %v", i, got, want)
		}
	}
	if spread(times) {
		t.Error("spread = true, want false of other times")
	}
}
