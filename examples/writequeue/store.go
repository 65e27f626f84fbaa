package main

import (
	"sync"
	"time"
)

// A store is the embedded database. A write takes 15 ms, and longer the more of them there
// are at once, as on a disk.
type store struct {
	mu      sync.Mutex
	writing int
	most    int // writes at once
}

func (s *store) write() {
	s.mu.Lock()
	s.writing++
	s.most = max(s.most, s.writing)
	took := time.Duration(s.writing) * 15 * time.Millisecond
	s.mu.Unlock()
	time.Sleep(took)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing--
}
