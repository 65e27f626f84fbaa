package learn

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"time"
)

// A Quota is an answer's report of one limit. The zero value reports nothing.
type Quota struct {
	Name      string        `json:",omitzero"`
	Unit      string        `json:",omitzero"`
	Limit     float64       `json:",omitzero"`
	Remaining float64       `json:",omitzero"`
	Reset     time.Duration `json:",omitzero"` // from the arrival of the answer
	Window    time.Duration `json:",omitzero"` // length, as reported

	HasLimit     bool `json:",omitzero"`
	HasRemaining bool `json:",omitzero"`
	HasReset     bool `json:",omitzero"`
	HasWindow    bool `json:",omitzero"`
	Filled       bool `json:",omitzero"` // at Reset a bucket is full again: no window ends
	Held         bool `json:",omitzero"` // the lane itself waits for the reset when nothing is left
	Advisory     bool `json:",omitzero"` // the vendor does not refuse when nothing remains
}

// mostPermits bounds a reported number of permits: a greater one is garbage.
const mostPermits = 1e9

// Key identifies the quota in later answers. It is not zero.
func (q *Quota) Key() uint64 {
	n := uint64(0)
	if q.Name == "" && q.HasLimit {
		n = math.Float64bits(q.Limit)
	}
	if q.HasWindow {
		n ^= uint64(q.Window)
	}
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64([]byte(q.Name+"\x00"+q.Unit), n))
	return h.Sum64() | 1
}

// sane reports whether the quota bounds calls of this lane.
func (q *Quota) sane() bool {
	counts := q.HasRemaining && q.Remaining >= 0 && q.Remaining <= mostPermits && (!q.HasLimit || q.Limit >= 1 && q.Limit <= mostPermits)
	return counts && (q.Unit == "" || q.Unit == "requests" || q.inFlight())
}

func (q *Quota) inFlight() bool { return q.Unit == "concurrent-requests" }

// Left returns the fewest permits that an answer reports as left in quotas that count calls, and false without a report.
func Left(quotas []Quota) (left float64, ok bool) {
	left = mostPermits
	for i := range quotas {
		if q := &quotas[i]; q.sane() && !q.inFlight() {
			left, ok = min(left, q.Remaining), true
		}
	}
	return left, ok
}
