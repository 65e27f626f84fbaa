package shaping

import (
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// A kernelTimer is an alarm whose time the kernel keeps, in a timerfd
// (timerfd_create(2)). The runtime's own timers end when epoll_wait(2) times
// out, which counts milliseconds. The end of a timerfd is an event for that
// same epoll_wait, and wakes it within microseconds. So no thread waits, and
// none spins.
//
// A goroutine reads the timerfd while the alarm is set. It ends when it finds
// the alarm not set.
type kernelTimer struct {
	ring func()
	file *os.File // the timerfd; collected with the timer, if it is not closed
	raw  syscall.RawConn

	mu   sync.Mutex
	set  bool
	read bool // a goroutine reads the timerfd
}

// newKernelTimer returns an alarm that is not set. It returns nil if the kernel
// makes no timerfd, or if the runtime's clock is not the kernel's.
func newKernelTimer(ring func()) alarm {
	const clockMonotonic = 1
	if !clockIsKernels() {
		return nil
	}
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil
	}
	k := &kernelTimer{ring: ring, file: os.NewFile(fd, "timerfd")}
	raw, err := k.file.SyscallConn()
	// The runtime waits for events of files that support deadlines.
	if k.raw = raw; err != nil || k.file.SetReadDeadline(time.Time{}) != nil || !k.arm(time.Hour) {
		_ = k.file.Close()
		return nil
	}
	return k
}

// clockIsKernels reports whether the runtime's clock is the kernel's. In a
// bubble of testing/synctest it is not: there time passes only while all
// goroutines wait, and begins in the year 2000.
func clockIsKernels() bool {
	var now syscall.Timeval
	if err := syscall.Gettimeofday(&now); err != nil {
		return false
	}
	return time.Since(time.Unix(now.Unix())).Abs() < time.Hour
}

// Reset sets the alarm to ring after d.
func (k *kernelTimer) Reset(d time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.set
	k.set = true
	k.arm(d)
	if !k.read {
		k.read = true
		go k.watch()
	}
	return was
}

// Stop unsets the alarm. It may still ring once.
func (k *kernelTimer) Stop() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.set
	k.set = false
	if k.read {
		k.arm(0) // the goroutine sees that it can end
	}
	return was
}

// Close stops the alarm and closes the timerfd.
func (k *kernelTimer) Close() error {
	k.Stop()
	return k.file.Close()
}

// watch rings whenever the time has come, as long as the alarm is set.
func (k *kernelTimer) watch() {
	var times [8]byte // that it expired
	for k.wanted() {
		if _, err := k.file.Read(times[:]); err != nil {
			return // it is closed
		}
		k.ring()
	}
}

// wanted reports whether the alarm is set. If not, the timerfd is not read from now on.
func (k *kernelTimer) wanted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = k.set
	return k.read
}

// arm lets the timerfd expire once, d from now or at once, whatever it was set
// to before. It reports whether the kernel did so.
func (k *kernelTimer) arm(d time.Duration) (done bool) {
	spec := struct{ interval, value syscall.Timespec }{value: syscall.NsecToTimespec(int64(max(d, 1)))}
	err := k.raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
		done = errno == 0
	})
	return done && err == nil
}
