// Weir shows what limits would have done to your own calls, and what a fleet has in Redis.
//
//	weir replay -limit "100/s burst 20" access.log
//	weir redis -namespace billing lanes
//
// Without a command, or with -h, it prints its commands. With -h after a command it prints the flags of
// that. It exits with 0, with 1 if something failed, and with 2 if it was called in a wrong way.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/weirgo/weir"
)

// The exit codes, besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
)

// A console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

const usage = `weir shows what limits would have done to your calls, and what a fleet has in Redis.

usage:
  weir replay -limit LIMIT [-limit LIMIT]... [flags] FILE   your own calls against limits
  weir redis [flags] lanes                                  the lanes of a namespace
  weir redis [flags] resume KEY                             end the pause of a lane
  weir redis [flags] forget KEY                             forget what a lane has learned
  weir version

weir COMMAND -h lists the flags of a command.
`

func main() {
	// A signal ends the process at once: while it reads or asks, nothing else would.
	os.Exit(run(context.Background(), os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr}))
}

// run runs a command, and returns the exit code.
func run(ctx context.Context, args []string, c console) int {
	commands := map[string]func(context.Context, []string, console) error{
		"replay":  func(_ context.Context, args []string, c console) error { return replay(args, c) },
		"redis":   redisCommand,
		"version": func(_ context.Context, _ []string, c console) error { return say(c, weir.Version) },
	}
	if len(args) == 0 {
		fmt.Fprint(c.err, usage)
		return exitUsage
	}
	if args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help" {
		fmt.Fprint(c.out, usage)
		return 0
	}
	command, ok := commands[args[0]]
	if !ok {
		fmt.Fprintf(c.err, "weir: unknown command %q\n\n%s", args[0], usage)
		return exitUsage
	}
	err := command(ctx, args[1:], c)
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(c.err, "weir %s: %v\nweir %s -h lists the flags\n", args[0], err, args[0])
		return exitUsage
	default:
		fmt.Fprintf(c.err, "weir %s: %v\n", args[0], err)
		return exitFailed
	}
}

func say(c console, text string) error {
	_, err := fmt.Fprintln(c.out, text)
	return err
}

// A usageError says how the program was called in a wrong way.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// parse reads flags before and after the other arguments, which it returns. For -h it prints the
// text and the flags.
func parse(flags *flag.FlagSet, args []string, c console, help string) (rest []string, err error) {
	flags.SetOutput(io.Discard)
	for len(args) > 0 {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(c.out, "%s\nflags:\n", help)
			flags.SetOutput(c.out)
			flags.PrintDefaults()
			return nil, err
		} else if err != nil {
			return nil, usageError{err}
		}
		if args = flags.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return rest, nil
}
