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
		args []string
		want options
	}{
		{"none", nil, options{
			replicas: 8, workers: 8, limit: throttle.TokenBucket(100, time.Second, 10),
			length: 20 * time.Second, redis: "embedded", seed: 1, out: "fleet",
		}},
		{"all", []string{
			"-n", "3", "-workers", "2", "-limit", "gcra 50/m burst 5", "-for", "1m",
			"-redis", "start", "-chaos", "-seed", "7", "-o", "pic",
		}, options{
			replicas: 3, workers: 2, limit: throttle.GCRA(50, time.Minute, 5),
			length: time.Minute, redis: "start", chaos: true, seed: 7, out: "pic",
		}},
		{"a Redis elsewhere", []string{"-redis", "db.test:6379", "-limit", "leaky 9/s"}, options{
			replicas: 8, workers: 8, limit: throttle.LeakyBucket(9, time.Second),
			length: 20 * time.Second, redis: "db.test:6379", seed: 1, out: "fleet",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseOptions(tt.args, io.Discard)
			if err != nil || got != tt.want {
				t.Errorf("parseOptions(%q) = %+v, %v, want %+v", tt.args, got, err, tt.want)
			}
		})
	}
}

func TestBadFlagIsNamedWithItsValue(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":                     "-n 0: want 1 to",
		"-n 65":                    "-n 65",
		"-workers -3":              "-workers -3",
		"-limit fast":              `"fast"`,
		"-limit 0/s":               `"0/s"`,
		"-limit fixed_100/s":       `-limit "fixed 100/s"`, // the vendor counts as a bucket only
		"-limit 100/s_of_tokens":   `-limit "100/s of tokens"`,
		"-limit 100000/s -for 1m":  "for 1m0s: more than 1000000 calls",
		"-limit 1/s_burst_2000000": "more than 1000000 calls",
		"-for 10":                  `"10"`,
		"-for 10ms":                "-for 10ms",
		"-for 3s -chaos":           "-chaos needs -for 5s",
		"-redis there":             `-redis "there"`,
		"-seed -1":                 `"-1"`,
		"-o no/such/dir/x":         "no/such/dir/ is no directory",
		"-speed 3":                 "-speed",
		"extra":                    `"extra"`,
	} {
		fields := strings.Fields(args)
		for i, f := range fields {
			fields[i] = strings.ReplaceAll(f, "_", " ")
		}
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), fields, &stdout, &stderr)
		if code != program.ExitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d, stderr %q; want exit %d and %s", args, code, &stderr, program.ExitUsage, want)
		}
	}
}

func TestHelp(t *testing.T) {
	var help bytes.Buffer
	if _, err := parseOptions([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"-n", "-workers", "-limit", "-for", "-redis", "-chaos", "-seed", "-o"} {
		if !strings.Contains(help.String(), "\n  "+name+" ") && !strings.Contains(help.String(), "\n  "+name+"\n") {
			t.Errorf("help lacks %s\n%s", name, &help)
		}
	}
}
