// Command page measures Weir beside other libraries and prints a page like docs/measured.md:
//
//	go -C internal/peerbench run ./page > page.md && mv page.md docs/measured.md
//
// It takes about ten minutes, needs redis-server (and uses Python with token-throttle, if it is there), and prints each command on standard error.
// Nothing else should run on the machine: discard a page unless its fastest row at one goroutine is the clock read.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

const head = `# Measured

This page is written by a program that runs all of it on one machine, in one go. To print it for yours:

` + "```sh" + `
go -C internal/peerbench run ./page
` + "```" + `

Compare rows, not machines: times drift with whatever else the machine does. "x first" is the multiple of the first row.
[What each library can do](comparison.md) is another page.
`

const tail = `[Testing](testing.md#what-it-finds) has which clients come before the time that a refusal gave.

[internal/peerbench](../internal/peerbench/doc.go) has more: memory of 100,000 callers in line, how late departures are, vendors that report in other dialects, token-throttle.
`

// A section is a benchmark of the page.
type section struct {
	title, about string
	command      string // for a shell, in the folder of the module
}

var sections = []section{
	{
		"A permit at hand",
		"What a decision costs if nobody waits, at 1 and at 64 goroutines. uber's limiter cannot be cancelled. Those that do not wait return false.",
		"go test -run '^$' -bench 'Local$' -benchtime 300ms -count 5 . | go run ./table -without B/op",
	}, {
		"A round trip",
		"What a transport costs over a stub that answers at once. A Transport guards against requests that net/http sends twice, and can retry: both can be turned off.",
		"go test -run '^$' -bench 'RoundTrip$/who=(stub|http.Client|xtime|retryablehttp|xtime.retryablehttp|failsafehttp|otelhttp|weir|weir-both-off)$' -benchtime 300ms -count 5 . | go run ./table -without B/op",
	}, {
		"2,000 calls to a vendor of 200/s",
		"64 workers, real sockets. The vendor answers 429 beyond a burst of 20, and reports what is left with each answer. Medians of three runs.",
		"go run ./drain -peers -unknown -runs 3",
	}, {
		"The same, and the vendor sends nothing but 429",
		"One run. A client that gives calls up is done early.",
		"go run ./drain -peers -unknown -says bare -runs 1",
	}, {
		"A decision through Redis",
		"A limit that is never reached, at 1, 16 and 256 goroutines. redis_rate-pipelined is redis_rate over go-redis' AutoPipeline: its calls share round trips, and each is still a script. INCREX is a command of Redis 8.8.",
		"go run ./fleet -decision -runs 3",
	}, {
		"2,000 calls of eight processes that share 200/s",
		"16 workers in each process. redis_rate polls, as its documentation has it. INCREX counts windows with half of the burst, and a caller who finds one full sleeps until it ends. token-throttle is for Python, and its burst is the rate of a second. x/time/rate shares nothing: each process has an eighth of the limit. Medians of three runs. Calls to Redis without an answer in time are lost: a run with some was on a busy machine.",
		"go run ./fleet -demand even -runs 3",
	},
}

// names are the rows of the benchmarks in words.
var names = strings.NewReplacer(
	"| who=floor |", "| one clock read and one compare-and-swap |",
	"| who=failsafe.TryAcquire |", "| failsafe-go, `TryAcquirePermit`: does not wait |",
	"| who=failsafe.Acquire |", "| failsafe-go, `AcquirePermit` |",
	"| who=uber.Take |", "| uber ratelimit, `Take` |",
	"| who=xtime.Allow |", "| x/time/rate, `Allow`: does not wait |",
	"| who=xtime.Wait |", "| x/time/rate, `Wait` |",
	"| who=weir.Wait |", "| **Weir, `Queue.Wait`** |",
	"| who=weir.Wait-7777 |", "| Weir, a rate that does not divide a second |",
	"| who=weir.Wait-2-limits |", "| Weir, two limits |",
	"| who=weir |", "| **Weir** |",
	"| who=weir-both-off |", "| Weir, no guard and no retries |",
	"| who=xtime |", "| x/time/rate around the stub |",
	"| who=xtime+retryablehttp |", "| x/time/rate and retryablehttp |",
	"| who=", "| ", "| Local |", "| |", "| RoundTrip |", "| |", ", even |", " |",
)

// modules are those whose versions the page names.
var modules = []string{
	"golang.org/x/time", "github.com/failsafe-go/failsafe-go", "github.com/hashicorp/go-retryablehttp",
	"github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9", "go.uber.org/ratelimit",
}

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func write(w io.Writer) error {
	versions, err := shell("go list -m -f '{{.Path}} {{.Version}}' " + strings.Join(modules, " "))
	if err != nil {
		return err
	}
	server, err := shell("redis-server --version")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\nMeasured with %s on %d cores (%s), at a load of %s before the first row, Redis %s, and:\n\n", head, runtime.Version(), runtime.NumCPU(), runtime.GOARCH, load(), version(server))
	for module := range strings.Lines(versions) {
		fmt.Fprintf(w, "- %s\n", strings.TrimSpace(module))
	}
	var left []string
	for _, s := range sections {
		fmt.Fprintln(os.Stderr, s.command)
		out, err := shell(s.command)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "Left out: ") && !slices.Contains(left, line) {
				left = append(left, line)
			}
		}
		fmt.Fprintf(w, "\n## %s\n\n%s\n\n%s", s.title, s.about, names.Replace(filled(lastTable(out))))
	}
	_, err = fmt.Fprint(w, "\n", strings.Join(left, "\n"), "\n", tail)
	return err
}

// shell returns the output of a command.
func shell(command string) (string, error) {
	c := exec.Command("bash", "-o", "pipefail", "-c", command)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return string(out), nil
}

// version returns the word behind "v=".
func version(text string) string {
	_, after, _ := strings.Cut(text, "v=")
	word, _, _ := strings.Cut(after, " ")
	return word
}

// load returns the load average of the last minute, as Linux has it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	word, _, _ := strings.Cut(string(text), " ")
	return word
}

// filled returns a table without the columns that are empty in all rows.
func filled(table string) string {
	var rows [][]string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if i == 0 || slices.ContainsFunc(rows[2:], func(r []string) bool { return strings.TrimSpace(r[i]) != "" }) {
				fmt.Fprintf(&b, "| %s ", strings.TrimSpace(cell))
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// lastTable returns the last table in a program's output, which has the medians.
func lastTable(out string) (table string) {
	inside := false
	for line := range strings.Lines(out) {
		row := strings.HasPrefix(line, "|")
		if row && !inside {
			table = ""
		}
		if inside = row; row {
			table += line
		}
	}
	return table
}
