package headers

import (
	"bytes"
	"strings"
	"time"
)

// A kind says why a header field is of interest.
type kind uint8

const (
	kindNone kind = iota
	kindAge
	kindRetryAfter
	kindShouldRetry // "false": the vendor forbids to try again
	kindRateLimit   // the words "rate limit" stand in the name
)

// kindOf returns the kind of a field by its name, and what follows the words of
// kindRateLimit.
func kindOf(name string) (k kind, rest string) {
	switch {
	case is(name, "Age"):
		return kindAge, ""
	case mayBeRetry(name) && retryAfterOf(name, "") >= 0:
		return kindRetryAfter, ""
	case mayBeRetry(name) && isShouldRetry(name):
		return kindShouldRetry, ""
	}
	rest, ok := cutRateLimit(name)
	switch {
	case !ok:
		return kindNone, ""
	case len(rest) >= len("Retryafter") && rest[0]|0x20 == 'r' && retryAfterOf(name, rest) >= 0:
		return kindRetryAfter, rest
	}
	return kindRateLimit, rest
}

// is reports whether a word is another one, in any case. Nearly always it is written as
// net/http writes it, or has another length.
func is(word, other string) bool {
	return word == other || len(word) == len(other) && strings.EqualFold(word, other)
}

// isShort reports whether a name is too short to be of interest, as Date, Etag
// and Server are.
func isShort(name string) bool { return len(name) < len("Ratelimit") && len(name) != len("Age") }

// mayBeRetry reports whether a name has the length and the ends of Retry-After,
// X-Retry-After, Retry-After-Ms, X-Retry-After-Ms, X-Amz-Retry-After,
// X-Ms-Retry-After-Ms, X-Should-Retry or Stripe-Should-Retry.
func mayBeRetry(name string) bool {
	switch len(name) {
	case 11, 13, 14, 16, 17, 19:
		first, last := name[0]|0x20, name[len(name)-1]|0x20
		return (first == 'r' || first == 'x' || first == 's') && (last == 'r' || last == 's' || last == 'y')
	}
	return false
}

// isShouldRetry reports whether a field may forbid another attempt.
func isShouldRetry(name string) bool {
	return is(name, "X-Should-Retry") || is(name, "Stripe-Should-Retry")
}

// mayHoldLimit reports whether the word "limit" may be part of a name. The word has five letters,
// so one of them, with its neighbour, is at an index of 4, 9, 14 and so on.
func mayHoldLimit(name string) bool {
	for i := 4; i < len(name); i += 5 {
		var neighbour int
		switch name[i] | 0x20 {
		case 'l', 'i', 'm':
			neighbour = min(i+1, len(name)-1)
		case 't':
			neighbour = i - 1
		default:
			continue
		}
		switch name[neighbour] | 0x20 {
		case 'i', 'm', 't':
			return true
		}
	}
	return false
}

// retryAfterFields are the fields that ask for a wait, with the unit of a
// number in them. The first with a valid value wins.
var retryAfterFields = [...]struct {
	name string
	unit time.Duration // zero: Retry-After itself, seconds or an instant
}{
	{"Retry-After-Ms", time.Millisecond},
	{"X-Retry-After-Ms", time.Millisecond},
	{"X-Ms-Retry-After-Ms", time.Millisecond},
	{"X-Amz-Retry-After", time.Millisecond}, // despite its name
	{"X-Ratelimit-Retry-After-Ms", time.Millisecond},
	{"Retry-After", 0},
	{"X-Retry-After", 0},
	{"X-Ratelimit-Retry-After", 0}, // and, as above, all whose name ends so behind "ratelimit"
	{"X-Ratelimit-Retryafter", 0},
	{"X-Ratelimit-Retry-After-Seconds", 0},
}

// retryAfterOf returns the index in retryAfterFields of a field, or -1. Rest follows the word
// "ratelimit" in its name.
func retryAfterOf(name, rest string) int {
	for i := range retryAfterFields {
		field := retryAfterFields[i].name
		after, limits := strings.CutPrefix(field, "X-Ratelimit-")
		if is(name, field) || limits && is(rest, after) {
			return i
		}
	}
	return -1
}

// cutRateLimit returns what follows the word "ratelimit" or "rate-limit" in a
// field's name. It is not ok if the name does not hold it as a word.
func cutRateLimit(name string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(strings.TrimPrefix(name, "X-"), "Ratelimit-"); ok { // the usual one
		return rest, true
	}
	for i := 4; i+5 <= len(name); i++ {
		if name[i]|0x20 != 'l' || !is(name[i:i+5], "limit") {
			continue
		}
		start := i
		if name[start-1] == '-' {
			start--
		}
		start -= len("rate")
		rest = name[i+5:]
		if start < 0 || !is(name[start:start+4], "Rate") ||
			start > 0 && name[start-1] != '-' || rest != "" && rest[0] != '-' {
			continue
		}
		return strings.TrimPrefix(rest, "-"), true
	}
	return "", false
}

// A quotaName is the part of a field's name after "ratelimit": the stated fact, and its quota.
type quotaName struct {
	fact   Fact
	window time.Duration // if a word names it; else zero
	per    time.Duration // the unit of a reset, if the last word names it; else zero
	unit   string
	size   int
	text   [maxName]byte
}

// maxName bounds the name of a quota, in bytes. The rest is cut off.
const maxName = 64

// parse reads the words of rest. Words that name a fact are left out of the
// quota's name. The others, in small letters, are the name.
func (n *quotaName) parse(rest string) {
	n.unit = unitRequests
	if n.fact = factOf(rest); n.fact != factNone { // as nearly always
		return
	}
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, "-")
		if fact := factOf(word); fact != factNone {
			// "limit" names no fact where another word does: Limit-Reset.
			if n.fact == factNone || fact != FactLimit {
				n.fact = fact
			}
			continue
		}
		if n.fact == FactReset && isTimeOfReset(word) {
			continue
		}
		if per := resetUnitOf(word); per != 0 && rest == "" && n.fact == FactReset {
			n.per = per
			continue
		}
		if w := windowOf(word); w != 0 {
			n.window = w
		}
		if n.size > 0 {
			n.add('-')
		}
		for i := range len(word) {
			n.add(word[i])
		}
	}
	if bytes.Contains(n.bytes(), []byte("token")) {
		n.unit = unitTokens
	}
}

// add appends a letter to the name, in lower case.
func (n *quotaName) add(c byte) {
	if n.size == len(n.text) {
		return
	}
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	n.text[n.size] = printable(c)
	n.size++
}

func (n *quotaName) bytes() []byte { return n.text[:n.size] }

// String returns the name. It allocates nothing for the names that are usual.
func (n *quotaName) String() string {
	switch string(n.bytes()) {
	case "":
		return ""
	case "requests":
		return "requests"
	case "tokens":
		return "tokens"
	case "input-tokens":
		return "input-tokens"
	case "output-tokens":
		return "output-tokens"
	case "minute":
		return "minute"
	case "hour":
		return "hour"
	case "day":
		return "day"
	}
	return string(n.bytes())
}

// factOf returns the fact that a word names, if it names one.
func factOf(word string) Fact {
	switch {
	case is(word, "Limit"):
		return FactLimit
	case is(word, "Remaining"):
		return FactRemaining
	case is(word, "Reset"):
		return FactReset
	case is(word, "Used"):
		return FactUsed
	}
	return factNone
}

// windowOf returns the window that a word names, or zero.
func windowOf(word string) time.Duration {
	switch {
	case is(word, "Second"), is(word, "Secondly"):
		return time.Second
	case is(word, "Minute"):
		return time.Minute
	case is(word, "Hour"):
		return time.Hour
	case is(word, "Day"), is(word, "Daily"):
		return 24 * time.Hour
	}
	return 0
}

// isTimeOfReset reports whether a word behind "reset" names no quota, as that of
// X-RateLimit-Reset-After and of X-RateLimit-Reset-Timestamp.
func isTimeOfReset(word string) bool {
	for _, w := range [...]string{"After", "At", "In", "Time", "Timestamp", "Epoch"} {
		if is(word, w) {
			return true
		}
	}
	return false
}

// resetUnitOf returns the unit of time that a word names, or zero: the reset of
// X-RateLimit-Reset-Ms is in milliseconds.
func resetUnitOf(word string) time.Duration {
	switch {
	case is(word, "Ms"), is(word, "Millis"), is(word, "Milliseconds"):
		return time.Millisecond
	case is(word, "Seconds"):
		return time.Second
	}
	return 0
}

// clean copies a vendor's word, cut to maxName bytes and to printable ASCII.
// The word may reach logs. The copy does not keep the whole header in memory.
func clean(word string) string {
	text := []byte(word[:min(len(word), maxName)])
	for i, c := range text {
		text[i] = printable(c)
	}
	return string(text)
}

// printable returns c, or "_" for a byte that is not printable ASCII.
func printable(c byte) byte {
	if c < ' ' || c > '~' {
		return '_'
	}
	return c
}
