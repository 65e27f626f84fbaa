package script

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/throttle"
)

// callerPeriod is the period in which callers are counted: see countCaller in lane.lua.
const callerPeriod = 5_000_000 // µs

// Pattern returns the pattern of the keys of a namespace, for SCAN.
func Pattern(namespace string) string {
	special := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
	return "weir:" + Layout + ":{" + special.Replace(Escape(namespace)) + "/*}"
}

// LaneOf returns the lane whose hash a key of the namespace is, and false for any other key. A lane
// too long for a key ends in a hash.
func LaneOf(namespace, key string) (lane string, ok bool) {
	rest, ours := strings.CutPrefix(key, "weir:"+Layout+":{"+Escape(namespace)+"/")
	name, whole := strings.CutSuffix(rest, "}")
	if !ours || !whole || strings.Contains(name, "}") {
		return "", false
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain // otherwise a hash has cut an escape
	}
	return name, true
}

// FlightsKey returns the key of the slots of a lane, given that of its hash.
func FlightsKey(key string) string { return key + ":flights" }

// A LaneState is the content of a lane's hash, for people.
type LaneState struct {
	Limits   []throttle.Limit // in force, in the order of their names
	Paused   time.Duration    // until the pause ends; zero: it is not paused
	Replicas int              // that called recently
	Interval time.Duration    // of the learned pace; zero: none
}

// ReadState reads the fields of a lane's hash at an instant by the clock of Redis. The error names
// the invalid field.
func ReadState(fields map[string]string, now time.Time) (s LaneState, err error) {
	micros := now.UnixMicro()
	var n [7]int64 // see readLane in lane.lua
	if words := strings.Fields(fields["lane"]); len(words) < len(n) || !readNumbers(words[:len(n)], n[:]) {
		return s, senseless("a lane of %q", fields["lane"])
	}
	s.Paused = time.Duration(max(n[2]-micros, 0)) * time.Microsecond
	switch n[3] {
	case micros / callerPeriod:
		s.Replicas = int(max(n[4], n[5]))
	case micros/callerPeriod - 1:
		s.Replicas = int(n[4])
	}
	if text, ok := fields["learned"]; ok {
		f, ok := readLearnedField(text)
		if !ok {
			return s, senseless("what was learned, %q", text)
		}
		if f.unit > f.den { // 1 µs: no pace
			s.Interval = time.Duration(float64(f.unit) / float64(f.den) * 1000)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		name, ok := strings.CutPrefix(field, "=")
		if !ok {
			continue
		}
		l, ok := readClaim(fields[field])
		if !ok {
			return s, senseless("a limit of %q", fields[field])
		}
		s.Limits = append(s.Limits, l.Named(name))
	}
	return s, nil
}

// readClaim returns the limit that a claim states: see encodeLimit.
func readClaim(text string) (l throttle.Limit, ok bool) {
	claim, _, _ := strings.Cut(text, ";")
	words := strings.Fields(claim)
	var n [5]int64
	if len(words) != 7 || !readNumbers(words[1:6], n[:]) {
		return l, false
	}
	a := slices.Index(algorithms[:], words[0])
	if a < 0 {
		return l, false
	}
	l = throttle.Limit{Algorithm: throttle.Algorithm(a), Permits: int(n[0]), Per: time.Duration(n[1]) * time.Microsecond}
	switch {
	case l.Algorithm == throttle.AlgorithmTokenBucket:
		l.Burst = int(n[4])
	case windows(l.Algorithm) && words[6] != "-":
		l.Align = throttle.Align(words[6])
	}
	return l, true
}

// ReadFlights returns how many slots for calls in flight are leased at an instant by the clock of
// Redis, and the most allowed: the least that a replica claims, or what they have learned. Zero:
// any number. Invalid leases do not count.
func ReadFlights(fields map[string]string, now time.Time) (leased, most int) {
	most, leases := MostSlots, 0
	var learned [2]int64
	if readNumbers(strings.Fields(fields[" learned"]), learned[:]) && learned[0] > 0 {
		most = int(min(learned[0], MostSlots))
	}
	for _, text := range fields {
		var n [9]int64 // see read in slots.lua
		if !readNumbers(strings.Fields(text), n[:]) || n[2] <= now.UnixMicro() || n[1] > MostSlots || n[3] > MostSlots {
			continue
		}
		leases, leased = leases+1, leased+int(n[3])
		most = min(most, int(n[1]))
	}
	if most == MostSlots || leases == 0 {
		return leased, 0
	}
	return leased, most
}
