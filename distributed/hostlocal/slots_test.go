package hostlocal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A write interrupted after any byte leaves the value before it whole. The place of the new value
// holds a still older one, which may be longer.
func TestWritesCutOffAnywhereLeaveTheLastValue(t *testing.T) {
	for _, sizes := range [][3]int{{10, 20, 30}, {300, 200, 100}, {5000, 4500, 6000}, {100, 6000, 200}, {6000, 100, 5000}} {
		var values [3][]byte // with their headers
		for i, size := range sizes {
			values[i] = append(make([]byte, headSize), bytes.Repeat([]byte{byte('a' + i)}, size)...)
		}
		f, err := os.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		s := slots{file: f}
		if err := errors.Join(s.write(values[0], 0), s.write(values[1], 0)); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(f.Name())
		if err := errors.Join(s.write(values[2], 0), os.WriteFile(f.Name(), before, 0)); err != nil {
			t.Fatal(err)
		}
		behind := max(len(values[2])-stride, 0) // bytes that are written first
		r := slots{file: f}
		for cut := range len(values[2]) {
			r.head = header{}
			if got, fresh, err := r.read(); err != nil || !fresh || !bytes.Equal(got, values[1][headSize:]) {
				t.Fatalf("sizes %v: after %d bytes, %d other bytes are read, %v, %v", sizes, cut, len(got), fresh, err)
			}
			next, at := stride+cut, tail(1)+int64(cut)
			if cut >= behind {
				next, at = cut-behind, int64(stride+cut-behind)
			}
			if _, err := f.WriteAt(values[2][next:next+1], at); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, err := r.read(); err != nil || !bytes.Equal(got, values[2][headSize:]) {
			t.Errorf("sizes %v: after the whole write, %d other bytes are read, %v", sizes, len(got), err)
		}
		_ = f.Close()
	}
}
