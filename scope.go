package weir

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/headers"
	course "github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A refusal may concern less than a lane: a route, a credential, or, in the
// overflow lane, one key. It then pauses a scoped lane, which requests of the
// same scope pass before their own.

// A visit is a call's turn in a scoped lane.
type visit struct {
	lane   *lane
	turn   shaping.Turn
	seen   course.Seen // the sub-lane, as the turn came
	passed bool        // it has departed, and nothing has landed or been given back since
}

// passScopes waits for the call's turn in every scoped lane that concerns it.
func (c *call) passScopes() error {
	c.enterScopes()
	if len(c.narrow) > 0 && c.started == 0 {
		c.started = c.lane.queue.Now()
	}
	for i := range c.narrow {
		v := &c.narrow[i]
		if err := v.lane.queue.WaitTurn(c.ctx, &v.turn); err != nil {
			c.giveBack()
			return err
		}
		v.passed, v.seen = true, v.lane.gate.seen()
	}
	return nil
}

// enterScopes enters the scoped lanes that there are by now.
func (c *call) enterScopes() {
	if c.lane.scoped.Load() == 0 {
		return
	}
	for _, scope := range c.scopes() {
		if scope == "" {
			continue
		}
		if l := c.t.lanes.scoped(c.lane, scope); l != nil {
			c.enterScope(l)
		}
	}
}

// enterScope keeps a scoped lane in which the call is counted, once.
func (c *call) enterScope(l *lane) {
	for _, v := range c.narrow {
		if v.lane == l {
			l.users.Add(-1)
			return
		}
	}
	turn := c.turn // it stands there, too, where its first arrival puts it
	turn.N, turn.Each = 1, nil
	c.narrow = append(c.narrow, visit{lane: l, turn: turn})
}

// scopePaused reports whether a scope was paused since the call has passed it.
func (c *call) scopePaused() bool {
	c.enterScopes()
	for _, v := range c.narrow {
		if s := v.lane.queue.State(); s.Paused > s.Now {
			return true
		}
	}
	return false
}

// concerned returns the lane that the last refusal concerns.
func (c *call) concerned(status int, signal *headers.Signal) *lane {
	scope := c.scope(signal.Scope)
	if c.doubtful(status, signal) {
		scope = c.scope(headers.ScopeRoute)
		if status == http.StatusForbidden {
			scope = c.routeAndCredential()
		}
	}
	if scope == "" {
		return c.lane
	}
	l := c.t.lanes.scope(c.lane, scope)
	if l == nil {
		return c.lane
	}
	c.enterScope(l)
	return l
}

// seed keys the hashes of credentials: they mean nothing outside this process.
var seed = maphash.MakeSeed()

// doubtful reports whether it is in doubt that a refusal concerns the whole
// lane: it closes the lane, does not say whom it concerns, and no other route of
// the key is closed so. One route may be in maintenance, or forbidden to one
// credential, while all others serve.
func (c *call) doubtful(status int, signal *headers.Signal) bool {
	if signal.Scope != headers.ScopeUnknown || c.told <= c.t.maxPause() ||
		status != http.StatusServiceUnavailable && status != http.StatusForbidden {
		return false
	}
	now := c.lane.queue.Now()
	return !c.lane.agreed(now, &doubt{key: c.key, path: routeOf(c.req), until: now.Add(min(c.told, longestPause))})
}

// A doubt is the refusal of one route of a key that may concern the whole lane.
type doubt struct {
	key, path string
	until     throttle.Instant
}

// agreed reports whether another route of the same key was refused like this one
// and still is. If none was, it remembers this one.
func (l *lane) agreed(now throttle.Instant, d *doubt) bool {
	for {
		was := l.doubt.Load()
		if was != nil && was.key == d.key && was.path != d.path && was.until > now {
			return true
		}
		if l.doubt.CompareAndSwap(was, d) {
			return false
		}
	}
}

// scopes returns the scopes of the request within its lane.
func (c *call) scopes() [4]string {
	return [...]string{c.scope(headers.ScopeRoute), c.scope(headers.ScopeCredential), c.routeAndCredential(), c.scope(headers.ScopeLane)}
}

// scope returns the scope of a refusal as part of a scoped lane's key; "" where
// it is the whole lane. In the overflow lane refusals concern one key.
func (c *call) scope(of headers.Scope) string {
	key := ""
	if c.lane.shared {
		key = keyScope(c.key)
	}
	switch of {
	case headers.ScopeRoute:
		return key + "route " + c.req.Method + " " + routeOf(c.req)
	case headers.ScopeCredential:
		return key + "credential " + credentialOf(c.req)
	default:
		return key
	}
}

// keyScope is how the scopes of a key begin in the overflow lane.
func keyScope(key string) string { return "key " + key + "\x00" }

// routeAndCredential returns the scope of a refusal of one route to one
// credential.
func (c *call) routeAndCredential() string {
	return c.scope(headers.ScopeRoute) + " credential " + credentialOf(c.req)
}

// routeOf returns the path with what looks like an identifier left out.
func routeOf(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	return template(req.URL.Path)
}

// template returns a path with "*" for each segment that looks like an
// identifier, and without a query.
func template(path string) string {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(path, "/")
	for i, s := range segments[1:] {
		if identifies(s) {
			segments[i+1] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// raw reports whether a lane's key looks like a path with an identifier in it.
func raw(key string) bool {
	path, _, _ := strings.Cut(key, "?")
	return strings.Contains(path, "/") && template(path) != path
}

// identifies reports whether a path segment looks like an identifier: it has
// a digit, unless it is a version such as v1, v1beta1 or 2010-04-01, or is
// longer than words are.
func identifies(segment string) bool {
	return !version(segment) && (len(segment) > 32 || strings.ContainsAny(segment, "0123456789@"))
}

// maxVersion is as long as versions get: v2.10beta1.
const maxVersion = 10

func version(segment string) bool {
	if _, err := time.Parse(time.DateOnly, segment); err == nil {
		return true
	}
	return len(segment) > 1 && len(segment) <= maxVersion && segment[0] == 'v' && '0' <= segment[1] && segment[1] <= '9'
}

// credentialOf returns a hash of what usually carries a credential.
func credentialOf(req *http.Request) string {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "Cookie"} {
		for _, value := range req.Header[name] {
			h.WriteString(value)
			h.WriteByte(0)
		}
		h.WriteByte(1)
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
