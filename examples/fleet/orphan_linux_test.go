package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weirgo/weir/examples/internal/program"
)

// startProgram runs the program in a process of its own and returns it with the
// ids of its replicas.
func startProgram(t *testing.T, out *bytes.Buffer) (*exec.Cmd, []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-n", "3", "-o", filepath.Join(t.TempDir(), "pic"))
	cmd.Env = append(os.Environ(), parentEnv+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var replicas []int
	eventually(t, "three replicas run", func() bool {
		replicas = replicasOf(cmd.Process.Pid)
		return len(replicas) == 3
	})
	return cmd, replicas
}

func TestNoReplicaOutlivesTheProgram(t *testing.T) {
	var out bytes.Buffer
	cmd, replicas := startProgram(t, &out)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range replicas {
		eventually(t, "the replicas are gone", func() bool { return !alive(pid) })
	}
}

func TestInterruptEndsReplicas(t *testing.T) {
	var out bytes.Buffer
	cmd, replicas := startProgram(t, &out)
	// As from a terminal: all processes in the foreground get the signal.
	for _, pid := range append(replicas, cmd.Process.Pid) {
		if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != program.ExitInterrupted {
		t.Errorf("exit %d, want %d\n%s", code, program.ExitInterrupted, &out)
	}
	for _, pid := range replicas {
		if alive(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
}

// A stat is the kernel's record of a process. See proc(5), /proc/pid/stat.
type stat struct {
	state   string // a letter; "" where there is no such process
	parent  int
	ignores uint64 // a bit for each signal from 1
}

func readStat(pid int) stat {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on
	s := stat{state: fields[0]}
	s.parent, _ = strconv.Atoi(fields[1])
	s.ignores, _ = strconv.ParseUint(fields[30], 10, 64)
	return s
}

// alive reports whether the process exists and is no zombie.
func alive(pid int) bool {
	s := readStat(pid)
	return s.state != "" && s.state != "Z" && s.state != "X"
}

// replicasOf returns the children of pid that have begun their task.
func replicasOf(pid int) []int {
	var replicas []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if s := readStat(child); s.parent == pid && s.ignores&(1<<(syscall.SIGINT-1)) != 0 {
			replicas = append(replicas, child)
		}
	}
	return replicas
}
