package headers

import (
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// maxSeparators bounds the members and parameters of a structured field. Each
// may take the sender two bytes and cost the parser a hundred or more.
const maxSeparators = 512

// draft reads the field RateLimit. It is a list of named items from
// draft-ietf-httpapi-ratelimit-headers-08 on, and a dictionary in 07. The list
// is tried first, because a list may also parse as a dictionary, while what 07
// sends never parses as a list.
func (r *reader) draft(lines []string) {
	if !parsable(lines) {
		return
	}
	if list, ok := parseStructured(lines, httpsfv.UnmarshalList); ok {
		for _, member := range list {
			r.draftItem(member)
		}
		return
	}
	if dictionary, ok := parseStructured(lines, httpsfv.UnmarshalDictionary); ok {
		r.draftDictionary(dictionary)
	}
}

// draftItem reads `"name";r=50;t=30;pk=:YQ==:`: no more than 50 may be used in the next 30 seconds.
// Up to draft 10, t says when there is more. In all drafts there is no more before. An item with a
// value of a wrong type is left out. The drafts' own examples lack r, and name the item by a token.
func (r *reader) draftItem(member httpsfv.Member) {
	item, name, ok := namedItem(member)
	remaining, hasRemaining, okRemaining := count(item.Params, "r")
	reset, hasReset, okReset := count(item.Params, "t")
	key, okKey := partitionKey(item.Params)
	if !ok || !okRemaining || !okReset || !okKey {
		return
	}
	q := r.partition(name, key)
	if hasRemaining {
		q.lowerRemaining(float64(remaining))
	}
	if hasReset {
		q.delayReset(seconds(reset), ResetWindow)
	}
}

// draftDictionary reads "limit=100, remaining=50, reset=5". A member of a wrong
// type is left out.
func (r *reader) draftDictionary(d *httpsfv.Dictionary) {
	member := func(key string) (int64, bool) {
		m, _ := d.Get(key)
		item, ok := m.(httpsfv.Item)
		n, isInteger := item.Value.(int64)
		return n, ok && isInteger && n >= 0
	}
	if n, ok := member("limit"); ok {
		r.quota("").lowerLimit(float64(n))
	}
	if n, ok := member("remaining"); ok {
		r.quota("").lowerRemaining(float64(n))
	}
	if n, ok := member("reset"); ok {
		r.quota("").delayReset(seconds(n), ResetWindow)
	}
}

// draftPolicy reads the field RateLimit-Policy. Its items are named as those of
// RateLimit from draft 08 on, and integers from 04 to 07.
func (r *reader) draftPolicy(lines []string) {
	if !parsable(lines) {
		return
	}
	list, _ := parseStructured(lines, httpsfv.UnmarshalList)
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok {
			if limit, ok := item.Value.(int64); ok {
				r.draftLimit(limit, item.Params)
				continue
			}
		}
		r.draftPolicyItem(member)
	}
}

// draftLimit reads "100;w=60".
func (r *reader) draftLimit(limit int64, parameters *httpsfv.Params) {
	w, has, ok := count(parameters, "w")
	window, whole := decimal{whole: uint64(w)}.times(time.Second, maxWindow)
	if limit >= 0 && has && ok && w > 0 && whole {
		r.addPolicy(policy{"", unitRequests, float64(limit), window})
	}
}

// draftPolicyItem reads `"name";q=100;w=60;qu="content-bytes";pk=:YQ==:`.
func (r *reader) draftPolicyItem(member httpsfv.Member) {
	item, name, ok := namedItem(member)
	limit, hasLimit, okLimit := count(item.Params, "q")
	w, hasWindow, okWindow := count(item.Params, "w")
	unit, okUnit := quotaUnit(item.Params)
	key, okKey := partitionKey(item.Params)
	if !ok || !okLimit || !okWindow || !okUnit || !okKey || hasWindow && w == 0 {
		return
	}
	q := r.partition(name, key)
	if unit != "" {
		q.Unit = unit
	}
	if hasLimit {
		q.lowerLimit(float64(limit))
	}
	if window, whole := (decimal{whole: uint64(w)}).times(time.Second, maxWindow); hasWindow && whole {
		q.lengthenWindow(window)
	}
}

// namedItem returns a member of the list that is an item with a name.
func namedItem(member httpsfv.Member) (item httpsfv.Item, name string, ok bool) {
	item, ok = member.(httpsfv.Item)
	name, isWord := word(item.Value)
	return item, clean(name), ok && isWord
}

// quotaUnit returns the unit that a policy names, or "" if it names none.
func quotaUnit(parameters *httpsfv.Params) (unit string, ok bool) {
	value, has := parameter(parameters, "qu")
	if !has {
		return "", true
	}
	unit, ok = word(value)
	return clean(unit), ok && unit != ""
}

// partitionKey returns the bytes of the parameter pk, or "" if it is not there.
func partitionKey(parameters *httpsfv.Params) (key string, ok bool) {
	value, has := parameter(parameters, "pk")
	text, isBytes := value.([]byte)
	return string(text), isBytes || !has
}

// word returns the text of a String or a Token.
func word(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case httpsfv.Token:
		return string(value), true
	}
	return "", false
}

// count returns an integer parameter. It is not ok if the parameter is present and is not an
// integer, or is below zero.
func count(parameters *httpsfv.Params, key string) (n int64, has, ok bool) {
	value, has := parameter(parameters, key)
	if !has {
		return 0, false, true
	}
	n, ok = value.(int64)
	return max(n, 0), true, ok && n >= 0
}

// parameter returns a parameter of an item, which may have none.
func parameter(parameters *httpsfv.Params, key string) (any, bool) {
	if parameters == nil {
		return nil, false
	}
	return parameters.Get(key)
}

// seconds returns n seconds, cut to maxWait.
func seconds(n int64) time.Duration {
	wait, _ := decimal{whole: uint64(n)}.times(time.Second, maxWait)
	return wait
}

// parsable reports whether a structured field is present and small enough to be parsed cheaply.
func parsable(lines []string) bool {
	separators := 0
	for _, line := range lines {
		for _, separator := range [...]string{",", ";", " "} {
			separators += strings.Count(line, separator)
		}
	}
	return len(lines) > 0 && separators+len(lines) <= maxSeparators
}

// parseStructured parses all lines of a structured field (RFC 9651), or nothing. It
// recovers from panics of the parser, because a vendor must not be able to crash the
// client. No other call hands a vendor's bytes to code outside this package and the
// standard library.
func parseStructured[T any](lines []string, parse func([]string) (T, error)) (field T, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	field, err := parse(lines)
	return field, err == nil
}
