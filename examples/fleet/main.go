// Fleet shows the effect of one more line: N processes, each with a plain http.Client of its own,
// share one limit through Redis, and the vendor sees no more than that limit. The vendor and Redis
// are part of the program and listen on loopback sockets; nothing leaves the machine.
//
//	go run ./fleet
//	go run ./fleet -chaos
//	go run ./fleet -chaos -redis start -limit "200/s burst 20" -n 12 -for 30s
//
// It starts itself again for each replica. It shows live how fast each one calls and whether it
// shares, a line for each replica; without a terminal, a line a second. With -chaos it kills and
// stops replicas, kills, stops and empties Redis, and has the vendor refuse a call, on a schedule
// that it prints first. At the end it prints a table, and draws what reached the vendor into
// fleet.svg and fleet.png.
//
// No replica outlives the program, however it ends.
//
// It exits with 0, 1 when a call failed or a replica ended by itself, 2 for a
// bad flag, and 130 after Ctrl-C, which ends it with the table and the picture
// of what happened so far.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
)

func main() {
	if task, ok := os.LookupEnv(taskEnv); ok {
		os.Exit(runReplica(task, os.Stdin, os.Stdout, os.Stderr))
	}
	program.Main(run, os.Interrupt, syscall.SIGTERM)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	if err != nil {
		return program.Usage("fleet", err, stderr)
	}
	r, err := share(ctx, o, stdout)
	switch {
	case ctx.Err() != nil && r.length == 0:
		return program.ExitInterrupted // before it began
	case ctx.Err() == nil && err != nil:
		return program.Fail("fleet", err, stderr)
	}
	writeTable(stdout, r)
	if err := writePicture(o.out, r); err != nil {
		return program.Fail("fleet", err, stderr)
	}
	fmt.Fprintf(stdout, "\npicture: %s\n", chart.Files(o.out))
	return program.Code(ctx, r.failed > 0)
}
