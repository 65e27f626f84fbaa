package shaping

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// preciseQueue returns a queue whose only permit is taken.
func preciseQueue(t *testing.T, limits ...throttle.Limit) *Queue {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("test", limits...)
	if err != nil {
		t.Fatal(err)
	}
	q := NewQueue(limiter)
	q.PrecisePacing = true
	wait(t, q)
	return q
}

func isPrecise(q *Queue) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, precise := q.alarm.(*kernelTimer)
	return precise
}

func TestPrecisePacingIsTheKernels(t *testing.T) {
	q := preciseQueue(t, throttle.LeakyBucket(100, time.Second))
	defer q.Close()
	wait(t, q)
	if !isPrecise(q) {
		t.Error("the kernel's timer is not used")
	}
}

// In a bubble the kernel's time does not count, and departures are exact.
func TestPrecisePacingIsExactInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := preciseQueue(t, throttle.LeakyBucket(1000, time.Second))
		start := time.Now()
		for i := range 1000 {
			wait(t, q)
			if got, want := time.Since(start), time.Duration(i+1)*time.Millisecond; got != want {
				t.Fatalf("departure %d at %v, want %v", i+1, got, want)
			}
		}
		if isPrecise(q) {
			t.Error("the kernel's timer is used in a bubble")
		}
	})
}

func TestPrecisePacingEndsWithTheLine(t *testing.T) {
	q := preciseQueue(t, throttle.LeakyBucket(1, time.Hour))
	for range 100 { // also while the goroutine that reads the timer is about to end
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := q.Wait(ctx); err != context.Canceled {
				t.Errorf("Wait = %v, want %v", err, context.Canceled)
			}
		})
		for q.Waiting() == 0 {
			runtime.Gosched()
		}
		cancel()
		wg.Wait()
	}
	k := q.alarm.(*kernelTimer)
	for k.isRead() {
		runtime.Gosched()
	}
	q.Close()
	if _, err := k.file.Read(make([]byte, 8)); err == nil {
		t.Error("the timerfd of a closed queue can be read")
	}
}

func (k *kernelTimer) isRead() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read
}

// Close ends waits also if the alarm is set.
func TestPrecisePacingEndsWithClose(t *testing.T) {
	q := preciseQueue(t, throttle.LeakyBucket(1, time.Hour))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := q.Wait(t.Context()); err == nil {
			t.Error("Wait = nil of a closed queue")
		}
	})
	for q.Waiting() == 0 {
		runtime.Gosched()
	}
	q.Close()
	wg.Wait()
}

// A queue that nobody closes leaves no file behind.
func TestPrecisePacingIsCollected(t *testing.T) {
	before := timerfds(t)
	for range 10 {
		wait(t, preciseQueue(t, throttle.LeakyBucket(1000, time.Second)))
	}
	for end := time.Now().Add(10 * time.Second); timerfds(t) > before; {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("%d timerfds are left of 10 queues that are gone", timerfds(t)-before)
		}
	}
}

// timerfds returns the number of timerfds that this process has open.
func timerfds(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:[timerfd]" {
			n++
		}
	}
	return n
}

// If the process may open no more files, the runtime's timer paces.
func TestPrecisePacingDoesWithoutAFile(t *testing.T) {
	time.Sleep(time.Millisecond) // the runtime opens a file for its first timer
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	none := was
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	q := preciseQueue(t, throttle.LeakyBucket(100, time.Second))
	defer q.Close()
	wait(t, q)
	if isPrecise(q) {
		t.Error("there is a kernel's timer without a file")
	}
}
