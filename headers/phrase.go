package headers

import "strings"

// behind returns the values that stand behind a text in sentences. Behind
// "again in ", the value of "Please try again in 20 seconds." is "20s".
func behind(lines []string, after string) []string {
	var values []string
	for _, line := range lines {
		if _, rest, ok := strings.Cut(line, after); ok {
			values = append(values, phrase(rest))
		}
	}
	return values
}

// phrase returns the first word of a text, without the full stop behind it. A
// bare number gets the unit that follows it.
func phrase(text string) string {
	word, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\"'`"), " ")
	if end := strings.IndexAny(word, ",;)\"'`\r\n<"); end >= 0 {
		if end < len(word)-1 || word[end] != '\'' { // else the number stands in quotes
			rest = ""
		}
		word = word[:end]
	}
	word = strings.TrimRight(word, ".!")
	if _, ok := parseDecimal(word); !ok {
		return word
	}
	for _, u := range [...]struct{ name, unit string }{
		{"millisecond", "ms"}, {"ms", "ms"}, {"second", "s"}, {"sec", "s"}, {"minute", "m"}, {"min", "m"}, {"hour", "h"}, {"day", "d"},
	} {
		if strings.HasPrefix(strings.ToLower(rest[:min(len(rest), len(u.name))]), u.name) {
			return word + u.unit
		}
	}
	return word
}
