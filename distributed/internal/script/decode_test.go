package script

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"testing"
)

// words makes an array as it comes from Redis.
func words(numbers ...int64) []any {
	list := make([]any, len(numbers))
	for i, n := range numbers {
		list[i] = n
	}
	return list
}

// rewrite is the inverse of decode, written from the layout alone.
func rewrite(r Reply) []any {
	flags := int64(0)
	for i, set := range []bool{r.Lost, r.Differs, r.Healed} {
		if set {
			flags |= 1 << i
		}
	}
	list := words(r.Now, r.Seen.Generation, r.Seen.Epoch, r.Seen.Furthest, r.Paused, int64(r.Alive), r.Period,
		flags, r.First, int64(len(r.Permits)))
	for _, p := range r.Permits {
		list = append(list, p.At, int64(p.Count))
	}
	list = append(list, words(r.Next...)...)
	for _, l := range r.Limits {
		if l.den > 0 {
			list = append(list, l.owedMicros, l.owedFrac, l.unit, l.den, l.Burst)
		} else {
			list = append(list, l.Hand, l.Used, l.Permits, int64(0), int64(0))
		}
	}
	return list
}

func TestDecodeReadsEveryField(t *testing.T) {
	want := Reply{
		Now: 1, Seen: Echo{2, 3, 4}, Paused: 5, Alive: 6, Period: 7, Lost: true, Differs: true, Healed: true, First: 9,
		Permits: []Granted{{10, 11}, {12, 13}},
		Next:    []int64{14, 15},
		Limits: []LimitReply{
			{owedMicros: 16, owedFrac: 17, unit: 18, den: 19, Burst: 20},
			{Hand: -21, Used: 22, Permits: 23},
		},
	}
	got, err := decode(rewrite(want), 2, true)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("decode() = %+v, %v, want %+v", got, err, want)
	}
}

func TestDecodeRefusesWhatTheScriptNeverWrites(t *testing.T) {
	valid := func() []any {
		return words(1, 2, 0, 4, 0, 1, 7, 0, 0, 1, 10, 1, 0, 0, 0, 1, 1, 1)
	}
	if _, err := decode(valid(), 1, true); err != nil {
		t.Fatal(err)
	}
	with := func(i int, v any) []any {
		list := valid()
		list[i] = v
		return list
	}
	for _, c := range []struct {
		name string
		v    any
	}{
		{"nothing", nil},
		{"text", "1"},
		{"an empty array", []any{}},
		{"a number that is text", with(0, "1")},
		{"a nil", with(3, nil)},
		{"a number beyond what Lua counts", with(0, int64(1)<<53)},
		{"a negative instant", with(0, int64(-1))},
		{"no caller alive", with(5, int64(0))},
		{"more callers than there can be", with(5, int64(mostCallers)+1)},
		{"an unknown flag", with(7, int64(8))},
		{"more pairs than there are", with(9, int64(2))},
		{"fewer pairs", with(9, int64(0))},
		{"a negative number of pairs", with(9, int64(-1))},
		{"as many pairs as overflow", with(9, int64(math.MaxInt64/2+1))},
		{"a permit before time began", with(10, int64(-1))},
		{"no permits at an instant", with(11, int64(0))},
		{"more permits than an int holds", with(11, int64(math.MaxInt32)+1)},
		{"a next permit before time began", with(12, int64(-1))},
		{"a negative debt of a bucket", with(13, int64(-1))},
		{"a fraction beyond one", with(14, int64(1))},
		{"an interval of nothing", with(15, int64(0))},
		{"a bucket of no burst", with(17, int64(0))},
		{"a window with a burst", with(16, int64(0))},
		{"one number short", valid()[:17]},
		{"one number more", append(valid(), int64(0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := decode(c.v, 1, true); !errors.Is(err, ErrReply) {
				t.Errorf("decode(%v) = %+v, %v, want %v", c.v, got, err, ErrReply)
			}
		})
	}
}

// Accepted replies have the layout, number by number.
func FuzzDecode(f *testing.F) {
	seed := func(limits uint8, state bool, numbers ...int64) {
		var raw []byte
		for _, n := range numbers {
			raw = binary.BigEndian.AppendUint64(raw, uint64(n))
		}
		f.Add(limits, state, raw)
	}
	seed(1, true, 1, 2, 0, 4, 0, 1, 7, 0, 0, 1, 10, 1, 0, 0, 0, 1, 1, 1)
	seed(2, true, 1, 2, 0, 4, 0, 1, 7, 7, 99, 2, 10, 1, 12, 3, 5, 6, 0, 0, 1, 1, 1, -3, 4, 5, 0, 0)
	seed(0, false, 1, 2, 0, 4, 0, 1, 7, 0, 0, 0)
	seed(0, false, 1, 2, 0, 4, 0, 1, 7, 0, 0, math.MaxInt64)
	f.Fuzz(func(t *testing.T, limits uint8, state bool, raw []byte) {
		list := make([]any, 0, len(raw)/8)
		for ; len(raw) >= 8; raw = raw[8:] {
			list = append(list, int64(binary.BigEndian.Uint64(raw)))
		}
		if len(raw) > 4 {
			list = append(list, string(raw)) // not a number
		}
		got, err := decode(list, int(limits), state)
		if err != nil {
			if !errors.Is(err, ErrReply) || !reflect.DeepEqual(got, Reply{}) {
				t.Fatalf("decode() = %+v, %v, want nothing and %v", got, err, ErrReply)
			}
			return
		}
		if again := rewrite(got); !reflect.DeepEqual(again, list) {
			t.Fatalf("decode() = %+v, which is\n%v, not\n%v", got, again, list)
		}
		if len(got.Next) != int(limits) || len(got.Permits) > mostGroups || got.Alive < 1 {
			t.Fatalf("decode() = %+v of %d limits", got, limits)
		}
	})
}
