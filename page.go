package weir

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

const (
	pageRows    = 100             // lanes shown, if the request asks for no other number
	maxPageRows = 1000            // and at most
	pagePast    = 120             // points of a chart
	pageStep    = time.Second     // between two points, and the age of what is shown
	pageKeep    = 5 * time.Minute // for which the past of a lane is kept that nobody looks at
	maxPageForm = 64 << 10        // bytes of a form
	pageTenants = 5               // classes and tenants shown of a line
)

//go:embed page.html
var pageText string

// pagePolicy allows the page its own script and style, and nothing from elsewhere.
var pagePolicy = sync.OnceValue(func() string {
	_, script, _ := strings.Cut(pageText, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	hash := sha256.Sum256([]byte(script))
	return "default-src 'none'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(hash[:]) + "'"
})

// A Page is an [http.Handler] that shows the lanes of a Transport: their limits as
// configured and as learned, who waits, what is in flight, pauses, and whether the store
// answers. A browser with JavaScript draws the last minutes of each, and follows. What a
// chart shows begins when somebody first looks. The query format=json returns the same as
// JSON. The queries q, sort (waiting, key, use or paused) and n search, sort and bound it.
//
// It shows keys, which may name customers, so serve it where only operators can reach it.
// It loads nothing from elsewhere. Make it with [Handler], and set its field before first
// use. It is safe for concurrent use.
type Page struct {
	// Operate reports whether a request may pause and resume lanes and set limits. Requests
	// from pages of other sites may not, whatever it returns. If nil, nobody may.
	Operate func(*http.Request) bool

	transport *Transport

	mu     sync.Mutex
	taken  time.Time // when states were; zero: never
	states []LaneState
	past   map[string]*trail // of the lanes that were looked at, by key
}

// A trail is what a lane's charts show, the oldest point first.
type trail struct {
	seen    time.Time
	waiting []int
	use     []float64
}

// Handler returns a page that shows the lanes of a Transport. Nobody may change
// anything with it until Operate is set.
func Handler(t *Transport) *Page { return &Page{transport: t, past: map[string]*trail{}} }

// A pageView is what the page shows, and the JSON beside it.
type pageView struct {
	At      time.Time `json:"at"`
	Lanes   int       `json:"lanes"`   // all that there are
	Found   int       `json:"found"`   // that match the search
	Waiting int       `json:"waiting"` // requests, in all lanes
	Paused  int       `json:"paused"`  // lanes
	Lost    int       `json:"lost"`    // lanes whose store does not answer
	Operate bool      `json:"operate"`
	Rows    []pageRow `json:"rows"`
}

// A pageRow is one lane. Times are in seconds.
type pageRow struct {
	Key      string      `json:"key"`
	Waiting  int         `json:"waiting"`
	Line     []pageLine  `json:"line"` // the classes and tenants with the most callers in line
	Who      string      `json:"who"`  // the same as text; "": all are of one class and tenant
	Requests int         `json:"requests"`
	InFlight int         `json:"inFlight"`
	Paused   float64     `json:"paused"`
	Use      float64     `json:"use"` // share of the limit that is used most
	Limits   []pageLimit `json:"limits"`
	Learned  string      `json:"learned"`
	Refused  float64     `json:"refused"` // since the server last refused; zero: never
	Counts   pageCounts  `json:"counts"`
	Calls    string      `json:"calls"` // both as text
	Store    string      `json:"store"`
	Past     pagePoints  `json:"past"`
}

// A pageLimit is one limit of a lane.
type pageLimit struct {
	Limit    string  `json:"limit"`
	Headroom float64 `json:"headroom"`
	Use      float64 `json:"use"`
}

// A pageLine is the callers of one class and tenant in line.
type pageLine struct {
	Priority int    `json:"priority"`
	Tenant   string `json:"tenant"`
	Waiting  int    `json:"waiting"`
}

// who returns a line's classes and tenants as text, one below the other.
func who(line []pageLine) string {
	if len(line) == 0 || len(line) == 1 && line[0].Tenant == "" && line[0].Priority == 0 {
		return ""
	}
	var texts []string
	for _, l := range line {
		class := map[shaping.Priority]string{shaping.PriorityHigh: "high", shaping.PriorityNormal: "normal", shaping.PriorityLow: "low"}[shaping.Priority(l.Priority)]
		class = cmp.Or(class, "priority "+strconv.Itoa(l.Priority))
		if l.Tenant != "" && l.Priority == 0 {
			class = ""
		}
		texts = append(texts, strings.TrimSpace(class+" "+l.Tenant)+": "+strconv.Itoa(l.Waiting))
	}
	return strings.Join(texts, "\n")
}

// calls returns what became of a lane's calls as text, one below the other.
func calls(c *Counts, refused time.Duration) string {
	var texts []string
	say := func(n uint64, format string, more ...any) {
		if n > 0 {
			texts = append(texts, fmt.Sprintf(format, append([]any{n}, more...)...))
		}
	}
	say(c.Admitted, "%d at once")
	if c.Held > 0 {
		say(c.Held, "%d held, %v each", (c.Waited / time.Duration(c.Held)).Round(time.Millisecond))
	}
	say(c.Rejected, "%d rejected")
	say(c.Refused, "%d refused, %v ago", refused.Round(time.Second))
	say(c.Retried, "%d retried")
	return strings.Join(texts, "\n")
}

// pageCounts are [Counts], with the time in seconds.
type pageCounts struct {
	Admitted uint64  `json:"admitted"`
	Held     uint64  `json:"held"`
	Rejected uint64  `json:"rejected"`
	Refused  uint64  `json:"refused"`
	Retried  uint64  `json:"retried"`
	Waited   float64 `json:"waited"`
}

// pagePoints are the points of a lane's charts, a second apart or more.
type pagePoints struct {
	Waiting []int     `json:"waiting"`
	Use     []float64 `json:"use"`
}

// ServeHTTP implements [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy())
	h.Set("X-Content-Type-Options", "nosniff")
	switch req.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		p.operate(w, req)
		return
	default:
		h.Set("Allow", "GET, HEAD, POST")
		http.Error(w, "weir: method "+req.Method+" is not one of GET, HEAD, POST", http.StatusMethodNotAllowed)
		return
	}
	query := req.URL.Query()
	view := p.view(query)
	view.Operate = p.may(req)
	if query.Get("format") == "json" {
		h.Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(view) // the client is gone
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, view.html(query))
}

// view returns the lanes that the query asks for.
func (p *Page) view(query url.Values) pageView {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	fresh := now.Sub(p.taken) >= pageStep
	if fresh {
		p.states, p.taken = p.transport.Snapshot(), now
	}
	v := pageView{At: p.taken, Lanes: len(p.states), Rows: []pageRow{}}
	search := query.Get("q")
	for i := range p.states {
		s := &p.states[i]
		v.Waiting += s.Waiting
		if s.Paused > 0 {
			v.Paused++
		}
		if s.Store != nil && s.Store.Lost {
			v.Lost++
		}
		if strings.Contains(s.Key, search) {
			v.Rows = append(v.Rows, rowOf(s))
		}
	}
	v.Found = len(v.Rows)
	slices.SortStableFunc(v.Rows, pageOrder(query.Get("sort")))
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil || n < 1 {
		n = pageRows
	}
	v.Rows = v.Rows[:min(n, maxPageRows, len(v.Rows))]
	p.remember(v.Rows, now, fresh)
	return v
}

// remember adds the rows that are shown to the past of their lanes, and shows that.
func (p *Page) remember(rows []pageRow, now time.Time, fresh bool) {
	for i := range rows {
		r := &rows[i]
		l := p.past[r.Key]
		if l == nil {
			l = new(trail)
			p.past[r.Key] = l
		}
		if fresh || len(l.use) == 0 {
			l.waiting, l.use = append(l.waiting, r.Waiting), append(l.use, r.Use)
			if n := len(l.use) - pagePast; n > 0 {
				l.waiting, l.use = slices.Delete(l.waiting, 0, n), slices.Delete(l.use, 0, n)
			}
		}
		l.seen = now
		r.Past = pagePoints{slices.Clone(l.waiting), slices.Clone(l.use)}
	}
	for key, l := range p.past {
		if now.Sub(l.seen) > pageKeep {
			delete(p.past, key)
		}
	}
}

// pageOrder returns the order of the rows: the lanes first that an operator looks for.
func pageOrder(by string) func(a, b pageRow) int {
	switch by {
	case "key":
		return func(a, b pageRow) int { return cmp.Compare(a.Key, b.Key) }
	case "use":
		return func(a, b pageRow) int { return cmp.Compare(b.Use, a.Use) }
	case "paused":
		return func(a, b pageRow) int { return cmp.Compare(b.Paused, a.Paused) }
	default:
		return func(a, b pageRow) int {
			return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Paused, a.Paused), cmp.Compare(b.Use, a.Use))
		}
	}
}

// rowOf returns the row of a lane.
func rowOf(s *LaneState) pageRow {
	r := pageRow{
		Key: s.Key, Waiting: s.Waiting, Line: []pageLine{}, Requests: s.Requests, InFlight: s.InFlight, Paused: s.Paused.Seconds(),
		Limits: []pageLimit{}, Refused: s.Refused.Seconds(), Counts: pageCounts{
			s.Counts.Admitted, s.Counts.Held, s.Counts.Rejected, s.Counts.Refused, s.Counts.Retried, s.Counts.Waited.Seconds(),
		},
	}
	for _, in := range s.Line[:min(pageTenants, len(s.Line))] {
		r.Line = append(r.Line, pageLine{int(in.Priority), in.Tenant, in.Waiting})
	}
	r.Who, r.Calls = who(r.Line), calls(&s.Counts, s.Refused)
	for _, l := range s.Limits {
		left, use := finite(l.Headroom), finite(l.Utilization)
		if s.Paused > 0 { // a pause takes the permits of its time
			left, use = max(left, 0), min(use, 1)
		}
		r.Limits = append(r.Limits, pageLimit{l.Limit.Label(), left, use})
		r.Use = max(r.Use, use)
	}
	if l := s.Learned; l.Rate > 0 {
		r.Learned = strconv.FormatFloat(l.Rate, 'g', 3, 64) + "/s"
	} else if l.InFlight > 0 {
		r.Learned = strconv.Itoa(l.InFlight) + " in flight"
	}
	if s.Learned.Probing {
		r.Learned = strings.TrimSpace(r.Learned + " probing")
	}
	switch {
	case s.Store == nil:
	case s.Store.Lost:
		r.Store = "lost: " + s.Store.Cause
	default:
		r.Store = strconv.Itoa(s.Store.Replicas) + " replicas"
	}
	return r
}

// finite returns a number that JSON can hold.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// html returns the page with a plain table, for a browser without JavaScript.
func (v *pageView) html(query url.Values) string {
	var rows strings.Builder
	for i := range v.Rows {
		r := &v.Rows[i]
		rows.WriteString("<tr><td>" + html.EscapeString(cmp.Or(r.Key, "(shared)")))
		var limits []string
		for _, l := range r.Limits {
			limits = append(limits, fmt.Sprintf("%s: %.3g left", l.Limit, l.Headroom))
		}
		paused := ""
		if r.Paused > 0 {
			paused = time.Duration(r.Paused * float64(time.Second)).Round(100 * time.Millisecond).String()
		}
		for _, cell := range []string{
			strings.TrimSpace(strconv.Itoa(r.Waiting) + "\n" + r.Who), "", strconv.Itoa(r.Requests - r.Waiting), fmt.Sprintf("%.0f %%", 100*r.Use), "",
			strings.Join(limits, "\n"), r.Learned, r.Calls, paused, r.Store,
		} {
			rows.WriteString("<td>" + html.EscapeString(cell))
		}
		rows.WriteString("\n")
	}
	return strings.NewReplacer(
		"{{rows}}", rows.String(),
		"{{q}}", html.EscapeString(query.Get("q")),
		"{{lanes}}", strconv.Itoa(v.Lanes), "{{found}}", strconv.Itoa(v.Found), "{{shown}}", strconv.Itoa(len(v.Rows)),
		"{{waiting}}", strconv.Itoa(v.Waiting), "{{paused}}", strconv.Itoa(v.Paused), "{{lost}}", strconv.Itoa(v.Lost),
		"{{at}}", v.At.Format(time.TimeOnly),
	).Replace(pageText)
}

// may reports whether a request may change anything.
func (p *Page) may(req *http.Request) bool { return p.Operate != nil && p.Operate(req) }

// operate pauses or resumes a lane, or sets limits, as a form asks for: do is pause (with
// for, a duration), resume or limits (with a list in limits). key is the lane's.
func (p *Page) operate(w http.ResponseWriter, req *http.Request) {
	if err := http.NewCrossOriginProtection().Check(req); err != nil || !p.may(req) {
		http.Error(w, "weir: this page is read-only", http.StatusForbidden)
		return
	}
	req.Body = http.MaxBytesReader(w, req.Body, maxPageForm)
	if err := p.do(req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.taken = time.Time{} // what is shown next has changed
	p.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// do does what a form asks for.
func (p *Page) do(req *http.Request) error {
	if err := req.ParseForm(); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	key := req.PostForm.Get("key")
	switch what := req.PostForm.Get("do"); what {
	case "resume":
		return p.transport.Resume(key)
	case "pause":
		d, err := time.ParseDuration(req.PostForm.Get("for"))
		if err != nil {
			return fmt.Errorf("weir: pausing lane %q: %w", key, err)
		}
		return p.transport.Pause(key, d)
	case "limits":
		var limits []throttle.Limit
		var errs []error
		for text := range strings.SplitSeq(req.PostForm.Get("limits"), ",") {
			l, err := throttle.ParseLimit(strings.TrimSpace(text))
			limits, errs = append(limits, l), append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return p.transport.SetLimits(limits...)
	default:
		return fmt.Errorf("weir: do=%q is not one of pause, resume, limits", what)
	}
}
