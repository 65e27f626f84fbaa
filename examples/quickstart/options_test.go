package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

func TestParseOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		args string
		want options
	}{
		{"embedded vendor", "", options{limit: throttle.TokenBucket(50, time.Second, 8), calls: 500, workers: 32, out: "quickstart"}},
		{"own endpoint is called politely", "-url https://api.test/x",
			options{url: "https://api.test/x", limit: throttle.TokenBucket(2, time.Second, 1), calls: 20, workers: 4, out: "quickstart"}},
		{"all", "-url http://api.test -rate 30/m -burst 3 -n 7 -workers 2 -plain -o pic",
			options{url: "http://api.test", limit: throttle.TokenBucket(30, time.Minute, 3), calls: 7, workers: 2, plain: true, out: "pic"}},
		{"rate per second", "-rate 60", options{limit: throttle.TokenBucket(60, time.Second, 8), calls: 500, workers: 32, out: "quickstart"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseOptions(strings.Fields(tt.args), io.Discard)
			if err != nil || got != tt.want {
				t.Errorf("parseOptions(%q) = %+v, %v, want %+v", tt.args, got, err, tt.want)
			}
		})
	}
}

func TestBadFlagIsNamedWithItsValue(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":              "-n 0: want 1 to",
		"-n many":           `"many"`,
		"-workers -3":       "-workers -3",
		"-burst 0":          "-burst 0",
		"-rate fast":        `-rate "fast"`,
		"-rate 0":           `-rate "0"`,
		"-rate 0.5":         `-rate "0.5"`,
		"-rate leaky=5/s":   `-rate "leaky=5/s"`,
		"-rate=":            `-rate ""`,
		"-o no/such/dir/x":  "no/such/dir/ is no directory",
		"-o=":               `-o ""`,
		"-plain":            "-plain",
		"-speed 3":          "-speed",
		"extra":             `"extra"`,
		"-url ftp://x":      "-url",
		"-url=":             "-url",
		"-url /only/a/path": "-url",
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &stdout, &stderr)
		if code != program.ExitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d, stderr %q; want exit %d and %s", args, code, &stderr, program.ExitUsage, want)
		}
	}
}

func TestBadAddressIsNotRepeated(t *testing.T) {
	for _, args := range []string{
		"-url https://user:hunter2@:bad/",
		"-url http://user:hun/ter2@api.test",
		"-url user:hunter2@api.test",
		"https://user:hunter2@api.test",
	} {
		_, err := parseOptions(strings.Fields(args), io.Discard)
		if err == nil || strings.Contains(err.Error(), "hun") {
			t.Errorf("%s: error %v, want one without the password", args, err)
		}
	}
}

func TestHelp(t *testing.T) {
	var help bytes.Buffer
	if _, err := parseOptions([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"-url", "-rate", "-burst", "-n", "-workers", "-plain", "-o"} {
		if !strings.Contains(help.String(), name) {
			t.Errorf("help lacks %s", name)
		}
	}
}
