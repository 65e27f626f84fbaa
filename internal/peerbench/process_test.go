package peerbench

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// settle returns when all started goroutines of this process wait.
func settle() {
	waiting := []metrics.Sample{{Name: "/sched/goroutines/waiting:goroutines"}}
	for metrics.Read(waiting); waiting[0].Value.Uint64() < waiters; metrics.Read(waiting) {
		time.Sleep(time.Millisecond)
	}
}

// resident returns the bytes of memory that this process occupies. Without /proc it panics, which
// ends the child and skips the benchmark.
func resident() int64 {
	var size, pages int64
	read("/proc/self/statm", &size, &pages)
	return pages * int64(os.Getpagesize())
}

// busy returns the share of one CPU in percent that this process takes for d.
func busy(d time.Duration) float64 {
	before := ticks()
	time.Sleep(d)
	const perSecond = 100 // USER_HZ, Linux's unit for user space
	return 100 * float64(ticks()-before) / perSecond / d.Seconds()
}

// ticks returns the CPU time of this process: fields 14 and 15 of proc(5).
func ticks() int64 {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		panic(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		panic(err)
	}
	return user + system
}

func read(file string, into ...any) {
	text, err := os.ReadFile(file)
	if err == nil {
		_, err = fmt.Sscan(string(text), into...)
	}
	if err != nil {
		panic(err)
	}
}

func TestProcessIsMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no /proc
	}
	if got := resident(); got < 1<<20 {
		t.Errorf("resident() = %d, want a MiB and more", got)
	}
	ballast := make([]byte, 64<<20)
	before := resident()
	for i := range ballast {
		ballast[i] = 1
	}
	if grown := resident() - before; grown < 60<<20 {
		t.Errorf("64 MiB written made the process %d bytes larger", grown)
	}
}
