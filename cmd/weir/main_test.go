package main

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestMain is the program itself if WEIR_MAIN is set.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// One signal ends a replay that waits for its input.
func TestASignalEndsTheProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can send another an interrupt")
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "replay", "-limit", "1/s", "-")
	program.Env = append(os.Environ(), "WEIR_MAIN=1")
	program.WaitDelay = time.Second
	if _, err := program.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("the program ended without a signal: %v", err)
	case <-time.After(500 * time.Millisecond): // it reads by now
	}
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the program ended with 0, want the signal")
		}
	case <-time.After(10 * time.Second):
		program.Process.Kill()
		t.Error("the program still runs 10 s after the signal")
	}
}
