package throttle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// String returns the limit as [ParseLimit] reads it: "100/s burst 20", "leaky
// 10/s", "fixed 5000/d of tokens align day@UTC name daily". A unit or a name
// that is not one plain word is quoted.
func (l Limit) String() string {
	var b strings.Builder
	if l.Algorithm != AlgorithmTokenBucket {
		b.WriteString(l.Algorithm.String() + " ")
	}
	b.WriteString(strconv.Itoa(l.Permits) + "/" + formatPer(l.Per))
	if l.Burst != 0 {
		b.WriteString(" burst " + strconv.Itoa(l.Burst))
	}
	if l.Keep != "" {
		b.WriteString(" keep " + quoteWord(string(l.Keep)))
	}
	if l.Reserve != "" {
		b.WriteString(" reserve " + quoteWord(string(l.Reserve)))
	}
	if l.Unit != "" {
		b.WriteString(" of " + quoteWord(l.Unit))
	}
	if l.Align != "" {
		b.WriteString(" align " + quoteWord(string(l.Align)))
	}
	if l.Name != "" {
		b.WriteString(" name " + quoteWord(l.Name))
	}
	return b.String()
}

// ParseLimit reads what [Limit.String] writes, and what people write: "100/s",
// "100 / s", "60/min", "5000/hour", "50_000/d", "10k/d", "100req/s", "90000
// tokens/m", "100 per second", "10 rps" (and rpm, rph, rpd). The algorithm's word
// may stand before or after the rate: "5000/h fixed". A [Part] is a percentage or a number:
// "5000/h keep 20%", "20000/d fixed reserve 100". The limit that it returns
// validates. The error names the part that cannot be read.
func ParseLimit(s string) (Limit, error) {
	var l Limit
	p := limitParser{input: s, rest: s}
	rated, named := false, false
	for {
		word, ok, err := p.word()
		if err != nil {
			return Limit{}, err
		}
		if !ok {
			break
		}
		if algorithm, ok := parseAlgorithm(word); ok {
			if named {
				return Limit{}, p.fail("a second algorithm %q", word)
			}
			l.Algorithm, named = algorithm, true
			continue
		}
		if beginsRate(word) {
			if rated {
				return Limit{}, p.fail("a second rate %q", word)
			}
			rated = true
			if err := p.rate(&l, word); err != nil {
				return Limit{}, err
			}
			continue
		}
		if err := p.setting(&l, word); err != nil {
			return Limit{}, err
		}
	}
	if !rated {
		return Limit{}, p.fail("no rate such as 100/s")
	}
	if err := l.Validate(); err != nil {
		return Limit{}, err
	}
	return l, nil
}

// MarshalText implements [encoding.TextMarshaler] with [Limit.String]. The
// error is that of Validate.
func (l Limit) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] with [ParseLimit].
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}

// A limitParser reads a limit word by word.
type limitParser struct{ input, rest string }

// fail returns an error that quotes the whole limit.
func (p *limitParser) fail(format string, args ...any) error {
	return fmt.Errorf("throttle: limit %q: %s", p.input, fmt.Sprintf(format, args...))
}

// word cuts off the next word, and removes its quotes.
func (p *limitParser) word() (word string, ok bool, err error) {
	p.rest = strings.TrimLeft(p.rest, " \t")
	if p.rest == "" {
		return "", false, nil
	}
	if p.rest[0] == '"' {
		quoted, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return "", false, p.fail("unclosed quote at %q", p.rest)
		}
		word, err = strconv.Unquote(quoted)
		if err != nil {
			return "", false, p.fail("bad quote %s", quoted)
		}
		p.rest = p.rest[len(quoted):]
		return word, true, nil
	}
	end := strings.IndexAny(p.rest, " \t")
	if end < 0 {
		end = len(p.rest)
	}
	word, p.rest = p.rest[:end], p.rest[end:]
	return word, true, nil
}

// beginsRate reports whether a word is a rate, or the number that begins one.
func beginsRate(word string) bool {
	return strings.Contains(word, "/") || word != "" && word[0] >= '0' && word[0] <= '9'
}

// rate reads "100/s", "100/1m30s" and "50_000/d", and with the words that
// follow "100 / s", "90000 tokens/m", "100 per second" and "10 rps".
func (p *limitParser) rate(l *Limit, word string) (err error) {
	count, span, slash := strings.Cut(word, "/")
	if l.Permits, err = parseCount(count); err != nil {
		return p.fail("permits %q are not a whole number", count)
	}
	if !slash {
		if span, err = p.span(l, count); err != nil {
			return err
		}
	} else if span == "" {
		if span, _, err = p.word(); err != nil {
			return err
		}
	}
	if l.Per, err = parsePer(span); err != nil {
		return p.fail("per %q is not a duration such as s, 90s, 1m30s, h or d", span)
	}
	return nil
}

// span reads in how much time the permits are granted, and their unit if it
// stands before that.
func (p *limitParser) span(l *Limit, count string) (string, error) {
	word, _, err := p.word()
	if err != nil {
		return "", err
	}
	if unit, ok := strings.CutPrefix(word, "rp"); ok && len(unit) == 1 && strings.ContainsAny(unit, "smhd") {
		return unit, nil
	}
	unit, span, slash := strings.Cut(word, "/")
	if !slash && word != "per" { // a word before the slash, or before "per"
		if word, _, err = p.word(); err != nil {
			return "", err
		}
		if word == "per" {
			span = ""
		} else if span, slash = strings.CutPrefix(word, "/"); !slash {
			return "", p.fail("%q permits in what time? such as %s/s, %s per second or %s rps", count, count, count, count)
		}
	} else if !slash {
		unit = ""
	}
	if unit != "" && !requestWords[unit] {
		if l.Unit != "" {
			return "", p.fail("a second unit %q", unit)
		}
		l.Unit = unit
	}
	if span == "" {
		span, _, err = p.word()
	}
	return span, err
}

// requestWords are how people write the zero unit.
var requestWords = map[string]bool{"req": true, "reqs": true, "request": true, "requests": true}

// parseCount reads a whole number, with underscores between digits, or thousands,
// "10k". The word for requests may stand behind it, "100req".
func parseCount(s string) (int, error) {
	for word := range requestWords { // no word ends in another
		if number, ok := strings.CutSuffix(s, word); ok {
			s = number
			break
		}
	}
	if thousands, ok := strings.CutSuffix(s, "k"); ok {
		n, err := parseCount(thousands)
		if err != nil || n > math.MaxInt/1000 || n < 0 || strings.HasSuffix(thousands, "k") {
			return 0, strconv.ErrSyntax
		}
		return n * 1000, nil
	}
	if strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(strings.ReplaceAll(s, "_", ""))
}

// setting reads the value that follows a word, and sets it.
func (p *limitParser) setting(l *Limit, word string) error {
	var target *string
	switch word {
	case "burst":
	case "keep":
		target = (*string)(&l.Keep)
	case "reserve":
		target = (*string)(&l.Reserve)
	case "of":
		target = &l.Unit
	case "align":
		target = (*string)(&l.Align)
	case "name":
		target = &l.Name
	default:
		return p.fail("unknown word %q", word)
	}
	value, ok, err := p.word()
	if err != nil {
		return err
	}
	if !ok {
		return p.fail("nothing after %q", word)
	}
	if target == nil {
		if l.Burst != 0 {
			return p.fail("a second burst %q", value)
		}
		if l.Burst, err = parseCount(value); err != nil || l.Burst < 1 {
			return p.fail("burst %q is not a positive whole number", value)
		}
		return nil
	}
	if *target != "" {
		return p.fail("a second %q: %q", word, value)
	}
	*target = value
	return nil
}

// parseAlgorithm returns the algorithm of a word.
func parseAlgorithm(word string) (Algorithm, bool) {
	for i, w := range algorithmWords {
		if w == word {
			return Algorithm(i), true
		}
	}
	return 0, false
}

// formatPer writes a duration as people do: "s", "h" and "d" for one of them, and 2h
// for the 2h0m0s of Duration.String.
func formatPer(d time.Duration) string {
	switch d {
	case time.Second:
		return "s"
	case time.Minute:
		return "m"
	case time.Hour:
		return "h"
	case 24 * time.Hour:
		return "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// unitWords are the units of time as people write them.
var unitWords = map[string]string{
	"sec": "s", "second": "s", "seconds": "s", "min": "m", "minute": "m", "minutes": "m",
	"hr": "h", "hour": "h", "hours": "h", "day": "d", "days": "d",
}

// parsePer reads a duration. A unit without a number means one of it, and d is
// a day of 24 hours.
func parsePer(s string) (time.Duration, error) {
	number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
	if unit, ok := unitWords[s[len(number):]]; ok {
		s = number + unit
	}
	if s != "" && (s[0] < '0' || s[0] > '9') && s[0] != '.' && s[0] != '-' && s[0] != '+' {
		s = "1" + s
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n > int64(maxDays) || n < 0 {
			return 0, fmt.Errorf("bad days %q", days)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(s)
}

// maxDays is the most days that fit a Duration.
const maxDays = (1<<63 - 1) / (24 * time.Hour)

// quoteWord quotes a text that could not be read back as one word.
func quoteWord(s string) string {
	if s == "" || s[0] == '"' || strings.ContainsAny(s, " \t") {
		return strconv.Quote(s)
	}
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
