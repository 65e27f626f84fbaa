package headers

import "strings"

// maxField bounds the bytes of one field, over all its lines. A longer field is
// not read at all. net/http lets ten megabytes of headers through.
const maxField = 16 << 10

// bounded returns the lines of a field, or none if they are too long together.
func bounded(lines []string) []string {
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if size > maxField {
		return nil
	}
	return lines
}

// A members walks over the values of a field. Several lines, and one line with
// commas, are the same (RFC 9110 section 5.3).
type members struct {
	lines []string
	rest  string
}

// next returns the next value that is not empty.
func (m *members) next() (string, bool) {
	for {
		if m.rest == "" {
			if len(m.lines) == 0 {
				return "", false
			}
			m.rest, m.lines = m.lines[0], m.lines[1:]
		}
		end := commaIn(m.rest)
		if end < len(m.rest) && isWeekday(trim(m.rest[:end])) {
			end += 1 + commaIn(m.rest[end+1:]) // the comma in an HTTP-date
		}
		value := trim(m.rest[:end])
		m.rest = m.rest[min(end+1, len(m.rest)):]
		if value != "" {
			return value, true
		}
	}
}

// commaIn returns the index of the first comma outside a quoted string, or the
// length of s.
func commaIn(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == ',' && !quoted:
			return i
		}
	}
	return len(s)
}

// isWeekday reports whether s is the name of a day as an HTTP-date has it
// before its comma.
func isWeekday(s string) bool {
	if len(s) < 3 || strings.IndexByte("MTWFS", s[0]) < 0 {
		return false
	}
	switch s[:3] {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return !strings.ContainsAny(s, " -0123456789")
	}
	return false
}
