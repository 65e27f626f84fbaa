// Package program is shared by the example programs: how they begin and end, send a call, and write
// a limit as Go.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The exit codes, besides 0.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130 // as a shell reports a process that SIGINT ended
)

// Main runs a program until it ends, or the first of the signals comes, which
// ends its context. A second one ends the process at once.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int, signals ...os.Signal) {
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Parse reads the flags of a program. For -h it prints the help and returns flag.ErrHelp. It prints
// no error.
func Parse(flags *flag.FlagSet, args []string, help io.Writer) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(help)
		fmt.Fprintf(help, "usage: %s [flags]\n", flags.Name())
		flags.PrintDefaults()
	}
	return err
}

// Usage returns the exit code for an error of Parse, which it prints.
func Usage(name string, err error, stderr io.Writer) int {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n%s: -h lists the flags\n", name, err, name)
	return ExitUsage
}

// Fail prints an error that ends the program, and returns its exit code.
func Fail(name string, err error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return ExitFailed
}

// Code returns the exit code of a run whose context is ctx.
func Code(ctx context.Context, failed bool) int {
	switch {
	case ctx.Err() != nil:
		return ExitInterrupted
	case failed:
		return ExitFailed
	}
	return 0
}

// Send sends a request and reads the answer to its end. It returns an error for every answer but
// 200.
func Send(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %s", resp.Status)
	}
	return nil
}

// Constructor returns the Go expression that makes a token bucket, a GCRA or a
// leaky bucket.
func Constructor(l throttle.Limit) string {
	per := l.Per.String()
	switch l.Per {
	case time.Second:
		per = "time.Second"
	case time.Minute:
		per = "time.Minute"
	case time.Hour:
		per = "time.Hour"
	}
	switch l.Algorithm {
	case throttle.AlgorithmLeakyBucket:
		return fmt.Sprintf("throttle.LeakyBucket(%d, %s)", l.Permits, per)
	case throttle.AlgorithmGCRA:
		return fmt.Sprintf("throttle.GCRA(%d, %s, %d)", l.Permits, per, l.Burst)
	default:
		return fmt.Sprintf("throttle.TokenBucket(%d, %s, %d)", l.Permits, per, l.Burst)
	}
}
