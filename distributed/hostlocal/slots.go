package hostlocal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A slots is a file with two places for a value. A value is written to the place that does not hold
// the last one, with a higher number and a checksum. So a write interrupted by a kill leaves the
// last value whole.
//
//	magic 8 | number 8 | events 8 | length 4 | checksum 4 | value
//
// The numbers are little-endian. The checksum is CRC-32C of the value and of the three
// fields before it. Both places are read at once. The end of a value that does not fit
// its place is kept behind them.
type slots struct {
	file *os.File
	head header // of the last value read or written; zero: no value
	none bool   // no value was whole when the file was read last
	buf  []byte
}

// A header describes a value.
type header struct {
	number uint64 // of the write, from one on
	events uint64 // see state
	length int
}

const (
	magic = "weirhl\x00\x01" // the last byte is the layout

	headSize = 32
	stride   = 4 << 10         // of the two places
	most     = 64 << 10        // bytes of a header with its value
	mostSize = most - headSize // bytes of a value
	behind   = most            // stride of values that do not fit the places
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// read returns the newest whole value, valid until the next call. fresh is false if there is none,
// or if it is the one last read or written. Its checksum is verified then, too: others may have to
// read it.
func (s *slots) read() (value []byte, fresh bool, err error) {
	heads, n, err := s.heads()
	if err != nil {
		return nil, false, err
	}
	first := newest(heads)
	for _, place := range [2]int{first, 1 - first} {
		h := heads[place]
		if h.number == 0 {
			break
		}
		value, err := s.valueAt(place, h, n)
		if err != nil {
			return nil, false, err
		}
		if value == nil {
			continue
		}
		fresh = h != s.head
		s.head, s.none = h, false
		return value[headSize:], fresh, nil
	}
	s.none = true
	return nil, false, nil
}

// newest returns the place of the last value.
func newest(heads [2]header) int {
	if heads[1].number > heads[0].number {
		return 1
	}
	return 0
}

// heads reads both places, and returns their headers and how many bytes were read. The values may
// be torn. A missing header is zero.
func (s *slots) heads() (heads [2]header, n int, err error) {
	if s.buf == nil {
		s.buf = make([]byte, 2*stride+most)
	}
	n, err = s.file.ReadAt(s.buf[:2*stride], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return heads, 0, err
	}
	for place := range heads {
		b := s.buf[min(place*stride, n):n]
		if len(b) < headSize || string(b[:len(magic)]) != magic {
			continue
		}
		h := header{binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), int(binary.LittleEndian.Uint32(b[24:]))}
		if h.length <= mostSize {
			heads[place] = h
		}
	}
	return heads, n, nil
}

// valueAt returns the value at a place with its header; nil if it is not whole. The
// first n bytes of the buffer were read from the file.
func (s *slots) valueAt(place int, h header, n int) ([]byte, error) {
	size, at := headSize+h.length, place*stride
	b := s.buf[at:]
	if size > stride {
		b = s.buf[2*stride:]
		copy(b, s.buf[at:at+stride])
		_, err := s.file.ReadAt(b[stride:size], tail(place))
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	} else if at+size > n {
		return nil, nil
	}
	if b = b[:size]; sum(b) != binary.LittleEndian.Uint32(b[28:]) {
		return nil, nil
	}
	return b, nil
}

// tail returns where the end of a value begins that does not fit a place.
func tail(place int) int64 { return int64(2*stride + place*behind) }

// write writes the next value. Before it, b has headSize bytes for the header.
func (s *slots) write(b []byte, events uint64) error {
	if len(b) > most {
		return fmt.Errorf("%d bytes of state are more than %d", len(b)-headSize, mostSize)
	}
	next := header{s.head.number + 1, events, len(b) - headSize}
	copy(b, magic)
	binary.LittleEndian.PutUint64(b[8:], next.number)
	binary.LittleEndian.PutUint64(b[16:], next.events)
	binary.LittleEndian.PutUint32(b[24:], uint32(next.length))
	binary.LittleEndian.PutUint32(b[28:], sum(b))
	place := int(next.number % 2)
	if len(b) > stride {
		if _, err := s.file.WriteAt(b[stride:], tail(place)); err != nil {
			return err
		}
		b = b[:stride]
	}
	if _, err := s.file.WriteAt(b, int64(place*stride)); err != nil {
		return err
	}
	s.head = next
	return nil
}

// sum returns the checksum of a value with its header.
func sum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[8:28], castagnoli), castagnoli, b[headSize:])
}
