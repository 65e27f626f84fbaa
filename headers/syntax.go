package headers

import (
	"cmp"
	"math"
	"strings"
	"time"
)

// field reads a field of the dialect. It leaves alone what an earlier field has
// stated.
func (r *reader) field(f *Field, lines []string) {
	switch f.Syntax {
	case SyntaxValue:
		r.value(f, lines, ReasonField)
	case SyntaxUsedOfLimit:
		r.usedOfLimit(f, lines)
	case SyntaxNamed:
		r.namedValues(f, lines)
	case SyntaxPairs:
		r.pairs(f, lines)
	case SyntaxWindows:
		r.windows(f, lines)
	case SyntaxExhausted:
		r.exhaustedNames(f, lines)
	case SyntaxPercent:
		r.percent(f, lines)
	case SyntaxStructured:
		if f.Fact == FactLimit {
			r.draftPolicy(lines)
		} else {
			r.draft(lines)
		}
	}
}

// value reads a field of one value. If it states a refusal, that has the reason
// given.
func (r *reader) value(f *Field, lines []string, reason Reason) {
	if f.After != "" {
		if lines = behind(lines, f.After); len(lines) == 0 {
			return
		}
	}
	switch f.Fact {
	case FactLimit:
		if n, ok := least(lines, f.Member, parseCount); ok {
			r.note(f, f.Quota, n)
		}
	case FactRemaining:
		if n, ok := least(lines, f.Member, f.parseRemaining); ok {
			r.note(f, f.Quota, n)
		}
	case FactUsed:
		if n, ok := most(lines, f.Member); ok {
			r.note(f, f.Quota, n)
		}
	case FactReset:
		if wait, ok := r.latest(lines, f.Member, f.Per); ok {
			if q := r.quotaIn(f, f.Quota); !q.HasReset {
				q.delayReset(wait, ResetUnknown)
			}
		}
	case FactWindow:
		if window, ok := parseWindow(lines[0], f.Per); ok {
			if q := r.quotaIn(f, f.Quota); !q.HasWindow {
				q.Window, q.HasWindow = window, true
			}
		}
	case FactName:
		if r.name == "" {
			r.name = clean(trim(lines[0]))
		}
	case FactRetryAfter:
		// In a body the same field may be in several places.
		if wait, ok := r.latest(lines, f.Member, f.Per); ok && (!r.sig.HasRetryAfter || r.waitOf == f) {
			r.sig.RetryAfter, r.sig.HasRetryAfter, r.waitOf = max(r.sig.RetryAfter, wait), true, f
		}
	case FactCost, FactRate:
		if n, ok := most(lines, f.Member); ok {
			r.earn(f, n)
		}
	case FactRefusal, FactNoRefusal, FactPermanent, FactScope:
		r.words(f, lines, reason)
	}
}

// parseRemaining reads how much of a quota remains.
func (f *Field) parseRemaining(s string) (float64, bool) {
	if f.NegativeUnknown {
		return parseCount(s)
	}
	return parseRemaining(s)
}

// words looks for the field's Words among its values.
func (r *reader) words(f *Field, lines []string, reason Reason) {
	for _, line := range lines {
		scope, ok := f.word(trim(line))
		if !ok {
			continue
		}
		r.scope = max(r.scope, scope)
		r.notProcessed = r.notProcessed || f.NotProcessed
		switch f.Fact {
		case FactRefusal:
			r.refusal = reason
		case FactNoRefusal:
			r.served = true
		case FactPermanent:
			r.forbidden = true
		}
	}
}

// word returns the widest scope of the Words that match text.
func (f *Field) word(text string) (scope Scope, ok bool) {
	if scope, ok = f.Words[text]; ok {
		return scope, true
	}
	for word, s := range f.Words {
		if matches(word, text) {
			scope, ok = max(scope, s), true
		}
	}
	return scope, ok
}

// matches reports whether text fits a pattern in which "*" stands for any text.
// It takes the first place of each part, which is enough: a later place leaves
// less text for the next part.
func matches(pattern, text string) bool {
	part, pattern, wild := strings.Cut(pattern, "*")
	if !wild {
		return text == part
	}
	if !strings.HasPrefix(text, part) {
		return false
	}
	text = text[len(part):]
	for {
		part, pattern, wild = strings.Cut(pattern, "*")
		if !wild {
			return strings.HasSuffix(text, part)
		}
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
}

// earn notes how fast a quota fills, or how much of it the request needs.
func (r *reader) earn(f *Field, n float64) {
	if r.earned = f.Quota; f.Fact == FactRate {
		r.rate = n
	} else {
		r.cost = n
	}
}

// awaitRate sets the wait to the time in which a quota earns what the request
// lacks, unless the vendor asks for another.
func (r *reader) awaitRate() {
	if r.sig.HasRetryAfter || r.rate <= 0 {
		return
	}
	for i := range r.quotas {
		q := &r.quotas[i]
		if q.Name != r.earned || !q.HasRemaining || r.cost <= q.Remaining {
			continue
		}
		seconds := min((r.cost-q.Remaining)/r.rate, maxWait.Seconds())
		r.sig.RetryAfter, r.sig.HasRetryAfter = time.Duration(math.Ceil(seconds*1e9)), true
		return
	}
}

// quotaIn returns the quota of a name, with what the field knows of its unit
// and window.
func (r *reader) quotaIn(f *Field, name string) *Quota {
	q := r.quota(name)
	if f.Unit != "" {
		q.Unit = f.Unit
	}
	if f.Window > 0 && !q.HasWindow {
		q.Window, q.HasWindow = f.Window, true
	}
	return q
}

// note notes one of the three counts of a quota.
func (r *reader) note(f *Field, name string, n float64) {
	switch q := r.quotaIn(f, name); f.Fact {
	case FactLimit:
		if !q.HasLimit {
			q.lowerLimit(n)
		}
	case FactRemaining:
		if !q.HasRemaining {
			q.lowerRemaining(n)
		}
	case FactUsed:
		r.addUsed(used{name: name, count: n})
	}
}

// usedOfLimit reads "32/40", and "name=18/5000; name=17/250(...)".
func (r *reader) usedOfLimit(f *Field, lines []string) {
	for part := range parts(lines, ";,") {
		name, ratio, isNamed := strings.Cut(part, "=")
		if !isNamed {
			name, ratio = f.Quota, part
		}
		ratio, _, _ = strings.Cut(ratio, "(")
		count, limit, _ := strings.Cut(ratio, "/")
		n, okCount := parseCount(trim(count))
		most, okLimit := parseCount(trim(limit))
		if okCount && okLimit {
			q := r.quotaIn(f, clean(name))
			q.lowerLimit(most)
			q.lowerRemaining(max(0, most-n))
		}
	}
}

// namedValues reads "name;107".
func (r *reader) namedValues(f *Field, lines []string) {
	for part := range parts(lines, ",") {
		name, number, _ := strings.Cut(part, ";")
		parse := parseCount
		if f.Fact == FactRemaining {
			parse = f.parseRemaining
		}
		if n, ok := parse(trim(number)); ok {
			r.note(f, clean(name), n)
		}
	}
}

// pairs reads "total=100; remaining=99; resets=41".
func (r *reader) pairs(f *Field, lines []string) {
	for part := range parts(lines, ";,") {
		key, text, _ := strings.Cut(part, "=")
		switch key {
		case "total", "limit":
			if n, ok := parseCount(text); ok {
				r.quotaIn(f, f.Quota).lowerLimit(n)
			}
		case "remaining":
			if n, ok := parseRemaining(text); ok {
				r.quotaIn(f, f.Quota).lowerRemaining(n)
			}
		case "resets", "reset":
			if wait, ok := r.reset(text, f.Per); ok {
				r.quotaIn(f, f.Quota).delayReset(wait, ResetUnknown)
			}
		}
	}
}

// windows reads "20:1,100:120": a number for each window, in seconds.
func (r *reader) windows(f *Field, lines []string) {
	for part := range parts(lines, ",") {
		number, length, _ := strings.Cut(part, ":")
		n, ok := parseCount(number)
		window, isWindow := parseWindow(length, f.Per)
		if !ok || !isWindow {
			continue
		}
		if f.Fact == FactUsed {
			r.addUsed(used{name: f.Quota, window: window, count: n})
			continue
		}
		q := r.quotaOf(f.Quota, window)
		if f.Fact == FactRemaining {
			q.lowerRemaining(n)
		} else {
			q.lowerLimit(n)
		}
		if f.Unit != "" {
			q.Unit = f.Unit
		}
	}
}

// exhaustedNames reads "60:name;name:scope": quotas that have none remaining
// for some seconds.
func (r *reader) exhaustedNames(f *Field, lines []string) {
	for part := range parts(lines, ",") {
		length, rest, _ := strings.Cut(part, ":")
		names, _, _ := strings.Cut(rest, ":")
		wait, ok := r.reset(trim(length), f.Per)
		if !ok {
			continue
		}
		for more := true; more; {
			var name string
			name, names, more = strings.Cut(names, ";")
			q := r.quotaIn(f, clean(trim(name)))
			q.lowerRemaining(0)
			q.delayReset(wait, ResetUnknown)
		}
	}
}

// parseWindow reads the length of a window, which is above zero.
func parseWindow(s string, per time.Duration) (time.Duration, bool) {
	if per <= 0 {
		per = time.Second
	}
	window, ok := parseDuration(trim(s), maxWindow+1)
	if d, bare := parseDecimal(trim(s)); bare {
		window, ok = d.times(per, maxWindow)
	}
	return window, ok && 0 < window && window <= maxWindow
}

// parts yields the parts of all lines that stand between separators.
func parts(lines []string, separators string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(separators, c) }) {
				if !yield(trim(part)) {
					return
				}
			}
		}
	}
}

// behind returns the values after a text in sentences. After "again in ", the value of "Please try
// again in 20 seconds." is "20s".
func behind(lines []string, after string) []string {
	var values []string
	for _, line := range lines {
		if _, rest, ok := strings.Cut(line, after); ok {
			values = append(values, phrase(rest))
		}
	}
	return values
}

// phrase returns the duration that a text begins with, as parseDuration reads it: "1m30s" of "1 minute
// and 30 seconds". A number without a unit, and any other first word, are returned unchanged.
func phrase(text string) string {
	var sum string
	for {
		word, rest := firstWord(text)
		number := strings.TrimRight(word, letters)
		if _, ok := parseDecimal(number); !ok {
			return cmp.Or(sum, word)
		}
		name := word[len(number):]
		if name == "" {
			end := len(rest) - len(strings.TrimLeft(rest, letters))
			name, rest = rest[:end], rest[end:]
		}
		name = strings.ToLower(name)
		unit, ok := unitNames[name]
		if !ok {
			unit, ok = unitNames[strings.TrimSuffix(name, "s")]
		}
		if !ok {
			return cmp.Or(sum, word)
		}
		sum += number + unit
		rest = strings.TrimLeft(strings.TrimPrefix(rest, "(s)"), ", ")
		text = strings.TrimPrefix(rest, "and ")
	}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// unitNames are the units of parseDuration by their names in sentences, in the singular.
var unitNames = map[string]string{
	"millisecond": "ms", "msec": "ms", "ms": "ms", "second": "s", "sec": "s", "s": "s",
	"minute": "m", "min": "m", "m": "m", "hour": "h", "hr": "h", "h": "h", "day": "d", "d": "d",
}

// firstWord returns the first word of a text, without quotes and the full stop behind it, and
// the text that continues its sentence.
func firstWord(text string) (word, rest string) {
	word, rest, _ = strings.Cut(strings.TrimLeft(text, " \t\"'`"), " ")
	if end := strings.IndexAny(word, ",;)\"'`\r\n<"); end >= 0 {
		if end < len(word)-1 || word[end] != '\'' && word[end] != ',' { // else the number is in quotes, or in a list
			rest = ""
		}
		word = word[:end]
	}
	if whole := strings.TrimRight(word, ".!"); whole != word {
		return whole, ""
	}
	return word, rest
}
