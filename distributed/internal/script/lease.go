package script

import (
	"time"

	"github.com/weirgo/weir/internal/store"
)

// MostSlots keeps the script's sums of all replicas' slots exact.
const MostSlots = store.MostFlights

// A LeaseReply is the reply of the script for slots.
type LeaseReply struct {
	Has       int  // slots of this replica
	Contended bool // replicas want more slots than there are: those that are not sure are lent in turns
	Sure      int
	Extra     int // slots beyond the sure ones in its turn: 0 or 1
	Fleet     int // slots of all replicas
	Replicas  int
	Ends      time.Duration // until the next lease of another may end; zero: no other lease
}

// DecodeLease reads a reply.
func DecodeLease(v any) (got LeaseReply, err error) {
	words, err := integers(v)
	if err != nil {
		return got, err
	}
	if len(words) != 7 {
		return got, senseless("%d numbers", len(words))
	}
	for i, n := range words {
		if n < 0 || i < 6 && n > MostSlots || n > Micros(LongestPause) {
			return got, senseless("a lease of %d", words)
		}
	}
	return LeaseReply{
		Has: int(words[0]), Sure: int(words[1]), Extra: int(words[2]),
		Contended: words[3] != 0, Fleet: int(words[4]), Replicas: int(words[5]), Ends: time.Duration(words[6]) * time.Microsecond,
	}, nil
}

// LongestPause bounds how long a message or a reply may pause a lane.
const LongestPause = time.Hour
