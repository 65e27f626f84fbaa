package headers

import (
	"cmp"
	"slices"
	"time"
)

// maxQuotas bounds the quotas of one signal. If there are more, those whose names sort first stay,
// in any order of arrival.
const maxQuotas = 64

// A tally gathers the quotas of one response. Each field states a part of one.
type tally struct {
	quotas   []Quota
	policies []policy
	used     []used
	name     string // of the quota that has none remaining
	surplus  *Quota // takes what there is no place for
}

// A policy is a limit with its window. Up to draft 07, policies are listed beside the quota in
// force, which may be one of them.
type policy struct {
	name, unit string
	limit      float64
	window     time.Duration
}

// A used is the used part of a quota, whose limit may be read later.
type used struct {
	name   string
	window time.Duration
	count  float64
}

// quota returns the quota of a name, and makes it if there is none.
func (t *tally) quota(name string) *Quota {
	for i := range t.quotas {
		if t.quotas[i].Name == name {
			return &t.quotas[i]
		}
	}
	return t.add(name)
}

// partition returns the part of a name's quota that has a key, and makes it if there is none.
// Fields that name no key are about the only part there is.
func (t *tally) partition(name, key string) *Quota {
	for i := range t.quotas {
		if q := &t.quotas[i]; q.Name == name && (q.Partition == key || q.Partition == "" || key == "") {
			q.Partition = cmp.Or(q.Partition, key)
			return q
		}
	}
	q := t.add(name)
	q.Partition = key
	return q
}

// quotaOf returns the quota of a name and a window, and makes it if there is
// none.
func (t *tally) quotaOf(name string, window time.Duration) *Quota {
	for i := range t.quotas {
		if q := &t.quotas[i]; q.Name == name && q.Window == window {
			return q
		}
	}
	q := t.add(name)
	q.Window, q.HasWindow = window, true
	return q
}

// quotaNamed returns the quota that a field's name names.
func (t *tally) quotaNamed(name *quotaName) *Quota {
	if t.isSurplus(name) {
		return t.spare()
	}
	q := t.find(name)
	if q == nil {
		q = t.add(name.String())
	}
	if q.Unit == unitRequests { // else the quota's policy has stated it
		q.Unit = name.unit
	}
	if name.window > 0 {
		q.lengthenWindow(name.window)
	}
	return q
}

// find returns the quota of a name, or nil.
func (t *tally) find(name *quotaName) *Quota {
	for i := range t.quotas {
		if t.quotas[i].Name == string(name.bytes()) {
			return &t.quotas[i]
		}
	}
	return nil
}

// isSurplus reports whether a name has no place. It makes no string of the name, because a header
// may hold a hundred thousand.
func (t *tally) isSurplus(name *quotaName) bool {
	return len(t.quotas) == maxQuotas && string(name.bytes()) > t.quotas[t.last()].Name
}

// last returns the index of the quota whose name sorts last.
func (t *tally) last() int {
	last := 0
	for i := range t.quotas {
		if t.quotas[i].Name > t.quotas[last].Name {
			last = i
		}
	}
	return last
}

// add adds a quota of a name, which counts requests. If there is no place, it takes that of the quota
// whose name sorts last, or goes into surplus.
func (t *tally) add(name string) *Quota {
	if len(t.quotas) < maxQuotas {
		t.quotas = append(t.quotas, Quota{Name: name, Unit: unitRequests})
		return &t.quotas[len(t.quotas)-1]
	}
	last := &t.quotas[t.last()]
	if name >= last.Name {
		last = t.spare()
	}
	*last = Quota{Name: name, Unit: unitRequests}
	return last
}

// spare returns surplus, made on first use.
func (t *tally) spare() *Quota {
	if t.surplus == nil {
		t.surplus = new(Quota)
	}
	return t.surplus
}

// addPolicy adds a policy, within the bound.
func (t *tally) addPolicy(p policy) {
	if len(t.policies) < maxQuotas {
		t.policies = append(t.policies, p)
	}
}

// addUsed adds a used part, within the bound.
func (t *tally) addUsed(u used) {
	if len(t.used) < maxQuotas {
		t.used = append(t.used, u)
	}
}

// settle joins the parts, and sorts the quotas, because fields come in any order.
func (t *tally) settle() {
	for _, u := range t.used {
		t.settleUsed(u)
	}
	if len(t.policies) > 1 {
		slices.SortFunc(t.policies, func(a, b policy) int {
			return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(a.limit, b.limit))
		})
	}
	for _, p := range t.policies {
		t.settlePolicy(p)
	}
	t.used, t.policies = nil, nil
	for i := range t.quotas {
		if t.quotas[i].Name == "" {
			t.quotas[i].Name = t.name
		}
	}
	t.quotas = slices.DeleteFunc(t.quotas, isEmpty)
	if len(t.quotas) < 2 { // as nearly always
		return
	}
	slices.SortStableFunc(t.quotas, func(a, b Quota) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Window, b.Window))
	})
}

// settleUsed computes what remains of a quota from its limit and used part.
func (t *tally) settleUsed(u used) {
	for i := range t.quotas {
		q := &t.quotas[i]
		if q.Name == u.name && (u.window == 0 || q.Window == u.window) && q.HasLimit && !q.HasRemaining {
			q.Remaining, q.HasRemaining = max(0, q.Limit-u.count), true
		}
	}
}

// settlePolicy gives a policy's window to the quota with the same limit. Any
// other policy becomes a quota of its own.
func (t *tally) settlePolicy(p policy) {
	for i := range t.quotas {
		q := &t.quotas[i]
		if q.Name != p.name || !q.HasLimit || q.Limit != p.limit {
			continue
		}
		if !q.HasWindow {
			q.Window, q.HasWindow = p.window, true
		}
		if q.Window == p.window {
			return
		}
	}
	q := t.add(p.name)
	q.Unit, q.Limit, q.HasLimit, q.Window, q.HasWindow = p.unit, p.limit, true, p.window, true
}

// isEmpty reports whether a quota has no facts.
func isEmpty(q Quota) bool {
	return !q.HasLimit && !q.HasRemaining && !q.HasReset && !q.HasWindow
}

func (q *Quota) lowerLimit(n float64)     { lower(&q.Limit, &q.HasLimit, n) }
func (q *Quota) lowerRemaining(n float64) { lower(&q.Remaining, &q.HasRemaining, n) }

// lengthenWindow sets the window, unless a longer one is set.
func (q *Quota) lengthenWindow(window time.Duration) {
	q.Window, q.HasWindow = max(q.Window, window), true
}

// delayReset sets the reset, unless a later one is set.
func (q *Quota) delayReset(wait time.Duration, kind ResetKind) {
	q.Reset, q.HasReset = max(q.Reset, wait), true
	if kind != ResetUnknown {
		q.ResetKind = kind
	}
}

// lower lowers a number, or sets it if it was not set.
func lower(n *float64, has *bool, to float64) {
	if !*has || to < *n {
		*n, *has = to, true
	}
}
