package redistest

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

const loopback = "127.0.0.1"

// ports are the ports given out to tests that have not ended.
var ports struct {
	sync.Mutex
	given map[int]bool
}

// blockSize is how many ports the tests of one process choose from. Another process, which may run
// at the same time, chooses from other ports.
const blockSize = 500

// freePort returns a port without a listener. It lies below those that the kernel gives to outgoing
// connections (from 32768 on Linux), so that a killed server finds its port free again.
func freePort(tb testing.TB) int {
	tb.Helper()
	block := 12000 + os.Getpid()%40*blockSize
	for range 1000 {
		port := block + rand.IntN(blockSize)
		if !take(port) {
			continue
		}
		tb.Cleanup(func() { giveBack(port) })
		if free(port) {
			return port
		}
	}
	tb.Fatal("redistest: no port is free")
	return 0
}

// take reports whether the port is free, and gives it out.
func take(port int) bool {
	ports.Lock()
	defer ports.Unlock()
	if ports.given[port] {
		return false
	}
	if ports.given == nil {
		ports.given = make(map[int]bool)
	}
	ports.given[port] = true
	return true
}

// giveBack returns the port for other tests.
func giveBack(port int) {
	ports.Lock()
	defer ports.Unlock()
	delete(ports.given, port)
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
