package learn

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"math/bits"
	"reflect"
)

// A State travels as a version byte, a fingerprint of its layout, and its fields in
// their order: whole numbers as varints, fractions with the bytes that are zero left
// out. One of another layout, or garbage, is not read: what was learned is then
// learned again.

// wireVersion is the version of the encoding.
const wireVersion = 1

// mostWire bounds an encoded State, in bytes. One takes 200 to 1,500.
const mostWire = 8 << 10

// errWire says that a State cannot be read.
var errWire = errors.New("learn: no state of this version")

// layout is a fingerprint of the fields of a State.
var layout = func() uint32 {
	h := fnv.New32a()
	describe(reflect.TypeFor[State](), func(text string) { h.Write([]byte(text)) })
	return h.Sum32()
}()

// describe passes on the names and kinds of a type's parts, in order.
func describe(t reflect.Type, add func(string)) {
	add(t.Kind().String())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			add(t.Field(i).Name)
			describe(t.Field(i).Type, add)
		}
	case reflect.Array:
		for range t.Len() {
			describe(t.Elem(), add)
		}
	}
}

// AppendBinary implements [encoding.BinaryAppender]. The error is always nil.
func (s *State) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, wireVersion)
	b = binary.BigEndian.AppendUint32(b, layout)
	return appendValue(b, reflect.ValueOf(s).Elem()), nil
}

// appendValue appends a value of any kind that a State holds.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			b = appendValue(b, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Float64:
		return binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(v.Float())))
	case reflect.Uint64, reflect.Uint8:
		return binary.AppendUvarint(b, v.Uint())
	default:
		return binary.AppendVarint(b, v.Int())
	}
	return b
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. If it returns an
// error, s is unchanged.
func (s *State) UnmarshalBinary(b []byte) error {
	if len(b) < 5 || len(b) > mostWire || b[0] != wireVersion || binary.BigEndian.Uint32(b[1:]) != layout {
		return errWire
	}
	var read State
	rest, ok := readValue(b[5:], reflect.ValueOf(&read).Elem())
	if !ok || len(rest) > 0 || !read.sane() {
		return errWire
	}
	*s = read
	return nil
}

// readValue reads what appendValue wrote, and returns the rest.
func readValue(b []byte, v reflect.Value) (rest []byte, ok bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if b, ok = readValue(b, v.Field(i)); !ok {
				return nil, false
			}
		}
		return b, true
	case reflect.Array:
		for i := range v.Len() {
			if b, ok = readValue(b, v.Index(i)); !ok {
				return nil, false
			}
		}
		return b, true
	case reflect.Bool, reflect.Float64, reflect.Uint64, reflect.Uint8:
		n, size := binary.Uvarint(b)
		if size <= 0 || !setUint(v, n) {
			return nil, false
		}
		return b[size:], true
	default:
		n, size := binary.Varint(b)
		if size <= 0 || v.OverflowInt(n) {
			return nil, false
		}
		v.SetInt(n)
		return b[size:], true
	}
}

// setUint sets a number, and reports whether it fits.
func setUint(v reflect.Value, n uint64) bool {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(n == 1)
		return n <= 1
	case reflect.Float64:
		f := math.Float64frombits(bits.ReverseBytes64(n))
		v.SetFloat(f)
		return !math.IsNaN(f)
	default:
		v.SetUint(n)
		return !v.OverflowUint(n)
	}
}

// sane reports whether the learner can go on with a state that was read.
// Whatever wrote it, the learner must neither panic nor hold calls for ever.
func (s *State) sane() bool {
	within := func(most float64, values ...float64) bool {
		for _, v := range values {
			if !(v >= 0 && v <= most) {
				return false
			}
		}
		return true
	}
	return s.Mode <= Rate && within(longest, s.RTT, s.Gap, s.P, s.G, s.Pause, s.Block) &&
		within(1e9, s.R, s.W, s.RefR, s.Cap, s.Ceil, s.B, s.Burst) && within(40, s.X) && within(1, s.U, s.Early, s.Slack) &&
		(s.Mode != Rate || s.R > 0) && s.Marked >= 0 && s.Cut >= 0 &&
		within(1e9, s.Before.Rate) && within(1, s.Before.Width) && within(longest, s.Before.Gap)
}
