package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// pythonVariable, in the environment, is a command that runs Python with the packages
// redis and token-throttle. If it is empty, python3 is.
const pythonVariable = "PEERBENCH_PYTHON"

// throttleScript is a replica whose limiter is token-throttle.
//
//go:embed token_throttle.py
var throttleScript string

// python returns a command that runs a script.
func python(script string) *exec.Cmd {
	words := append(strings.Fields(cmp.Or(os.Getenv(pythonVariable), "python3")), "-c", script)
	return exec.Command(words[0], words[1:]...)
}

// look determines which contenders cannot run here, and why.
func (b *bench) look(ctx context.Context) error {
	has, err := b.server.has(ctx, "increx")
	if err != nil {
		return err
	}
	if !has {
		b.leaveOut(increx, "the server lacks the command")
	}
	if err := python("import redis, token_throttle").Run(); err != nil {
		b.leaveOut(throttled, "Python lacks the packages redis and token-throttle")
	}
	return nil
}

func (b *bench) leaveOut(who, why string) {
	b.lacking = append(b.lacking, who)
	fmt.Fprintf(b.out, "Left out: %s, because %s.\n\n", who, why)
}
