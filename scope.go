package weir

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/shaping"
)

// A refusal may concern less than a lane: a route, a credential, or, in the
// overflow lane, one key. It then pauses a scoped lane, which requests of the
// same scope pass before their own.

// A visit is a call's turn in a scoped lane.
type visit struct {
	lane   *lane
	turn   shaping.Turn
	passed bool // it has departed, and nothing has landed or been given back since
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
		v.passed = true
	}
	return nil
}

// enterScopes enters the scoped lanes that there are by now.
func (c *call) enterScopes() {
	if c.lane.scoped.Load() == 0 {
		return
	}
	for _, scope := range c.scopes() {
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

// giveBack returns the permits of a departure that does not take place: those
// of the scoped lanes and, where it was granted, of the call's own.
func (c *call) giveBack() {
	if c.granted {
		c.granted = false
		c.lane.queue.Return(&c.turn)
	}
	for i := range c.narrow {
		if v := &c.narrow[i]; v.passed {
			v.passed = false
			v.lane.queue.Return(&v.turn)
		}
	}
}

// concerned returns the lane that a refusal of that scope concerns.
func (c *call) concerned(of headers.Scope) *lane {
	scope := c.scope(of)
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

// scopes returns the scopes of the request within its lane.
func (c *call) scopes() [3]string {
	scopes := [3]string{c.scope(headers.ScopeRoute), c.scope(headers.ScopeCredential)}
	if c.lane.shared {
		scopes[2] = c.scope(headers.ScopeLane)
	}
	return scopes
}

// scope returns the scope of a refusal as part of a scoped lane's key; "" where
// it is the whole lane.
func (c *call) scope(of headers.Scope) string {
	switch {
	case of == headers.ScopeRoute:
		return "route " + c.req.Method + " " + routeOf(c.req)
	case of == headers.ScopeCredential:
		return "credential " + credentialOf(c.req)
	case c.lane.shared: // in the overflow lane, refusals concern one key
		return "key " + c.key
	default:
		return ""
	}
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
