package distributed

import "time"

// mostSlots keeps the script's sums of all replicas' slots exact.
const mostSlots = 1 << 30

// A leaseReply is what the script says.
type leaseReply struct {
	has, sure, extra int
	contended        bool
	fleet            int // slots of all replicas
	replicas         int
	ends             time.Duration // until the next lease of another may end; zero: there is none
}

// decodeLease reads a reply.
func decodeLease(v any) (got leaseReply, err error) {
	words, err := integers(v)
	if err != nil {
		return got, err
	}
	if len(words) != 7 {
		return got, senseless("%d numbers", len(words))
	}
	for i, n := range words {
		if n < 0 || i < 6 && n > mostSlots || n > micros(longestPause) {
			return got, senseless("a lease of %d", words)
		}
	}
	return leaseReply{
		has: int(words[0]), sure: int(words[1]), extra: int(words[2]),
		contended: words[3] != 0, fleet: int(words[4]), replicas: int(words[5]), ends: time.Duration(words[6]) * time.Microsecond,
	}, nil
}

// longestPause bounds how long a message or a reply may hold anything.
const longestPause = time.Hour
