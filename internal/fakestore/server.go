package fakestore

import (
	"errors"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Server keeps the limits that replicas share, one state for each key.
type Server struct {
	roundTrip time.Duration
	started   time.Time
	base      throttle.Instant

	mu     sync.Mutex
	fault  Fault
	shared map[string]*shared
	calls  int // that arrived, whatever came of them
	runs   int
}

// A Fault is what befalls the calls to a server.
type Fault int

// The faults. The zero one is none.
const (
	Healthy Fault = iota
	Failing       // calls are answered with an error
	Silent        // calls are not answered
)

// NewServer returns a server whose calls take the time of a round trip.
func NewServer(roundTrip time.Duration) *Server {
	started := time.Now()
	return &Server{roundTrip: roundTrip, started: started, base: throttle.InstantOf(started), shared: make(map[string]*shared)}
}

// Break makes calls that arrive from now on meet a fault.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Calls returns how many calls arrived, whatever came of them.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// arrive counts a call, and returns its fault.
func (s *Server) arrive() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.fault
}

// Runs returns how many runs were granted.
func (s *Server) Runs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

func (s *Server) now() throttle.Instant {
	return s.base + throttle.Instant(time.Since(s.started))
}

// A shared is the state of one key: a local limiter that is asked ahead of
// time, and what it granted for instants to come.
type shared struct {
	limits  []throttle.Limit
	limiter throttle.Limiter
	ahead   throttle.Instant // no permit is dated after it
	granted []permit         // those dated after now: to come, void if a pause comes first
	epoch   int              // grows when what was granted became void
	paused  throttle.Instant
	members map[*limiter]bool
}

// join makes l one of the replicas under its key.
func (s *Server) join(l *limiter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.shared[l.key]
	if k == nil {
		k = &shared{limits: l.limits, members: make(map[*limiter]bool)}
		if err := k.restart(); err != nil {
			return err
		}
		s.shared[l.key] = k
	}
	k.members[l] = true
	return nil
}

func (s *Server) part(l *limiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shared[l.key].members, l)
}

// horizon bounds the time from the first permit of a run to its last.
const horizon = 100 * time.Millisecond

// A run is what one call brought: permits for some of those in line.
type run struct {
	now      throttle.Instant // by the server's clock
	epoch    int
	replicas int
	permits  []permit // in order
	next     throttle.Instant
}

// reserve grants a run: at least one of those asked for, more within the
// horizon.
func (s *Server) reserve(key string, asked []throttle.Request) (run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.shared[key], s.now()
	k.settle(now)
	s.runs++
	r := run{now: now, epoch: k.epoch, replicas: len(k.members)}
	for _, request := range asked {
		request.Since = max(now, k.ahead)
		at := max(k.forecast(request.Since, request).At, request.Since)
		if len(r.permits) > 0 && at > r.permits[0].at.Add(horizon) {
			break
		}
		request.Since = at
		if _, err := k.limiter.Take(at, request); err != nil {
			return run{}, err
		}
		k.ahead = at
		r.permits = append(r.permits, permit{at, request})
	}
	k.granted = append(k.granted, r.permits...)
	r.next = k.forecast(k.ahead, throttle.Request{N: 1}).At
	return r, nil
}

func (k *shared) forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	return k.limiter.Forecast(now, r)
}

// settle forgets what may have been spent by now.
func (k *shared) settle(now throttle.Instant) {
	kept := k.granted[:0]
	for _, p := range k.granted {
		if p.at > now {
			kept = append(kept, p)
		}
	}
	k.granted = kept
}

// void takes back what was granted for instants to come, the last first: the
// state must not owe it.
func (k *shared) void(now throttle.Instant) {
	k.settle(now)
	for i := len(k.granted) - 1; i >= 0; i-- {
		p := k.granted[i]
		k.limiter.Refund(p.at, p.at, p.request)
	}
	k.granted, k.ahead = nil, now
	k.epoch++
}

// restart makes the limiter anew.
func (k *shared) restart() (err error) {
	k.limiter, err = throttle.Local{}.Limiter("", k.limits...)
	return err
}

// reconcile believes the vendor, and tells the replicas of a pause.
func (s *Server) reconcile(key string, f throttle.Fact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.shared[key], s.now()
	pauses := f.Refused && f.Until > k.paused
	if pauses {
		k.paused = f.Until
		k.void(now)
		// What a pause voids is not owed after it, and a refund behind a burst
		// takes nothing off. A real store moves its state; this one forgets it,
		// windows too.
		if err := k.restart(); err != nil {
			return err
		}
	}
	k.limiter.Reconcile(now, f)
	if pauses {
		k.publish(news{now: now, epoch: k.epoch, paused: k.paused})
	}
	return nil
}

func (s *Server) tune(key string, limits []throttle.Limit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.shared[key], s.now()
	k.void(now)
	if err := k.limiter.Tune(now, limits...); err != nil {
		return err
	}
	k.limits = limits
	tolerance := k.limiter.Tolerance()
	k.publish(news{now: now, epoch: k.epoch, limits: limits, tolerance: tolerance})
	return nil
}

func (s *Server) correct(key string, at throttle.Instant, r, actual throttle.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared[key].limiter.Settle(s.now(), at, r, actual)
}

// news is what a server tells every replica.
type news struct {
	now    throttle.Instant
	epoch  int
	paused throttle.Instant // zero: no pause
	limits []throttle.Limit // nil: as they were

	tolerance time.Duration // of the limits
}

func (k *shared) publish(n news) {
	for l := range k.members {
		l.hear(n)
	}
}

// errFailing is what a failing server answers.
var errFailing = errors.New("fakestore: the server fails")
