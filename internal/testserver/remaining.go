package testserver

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// usedOf finds the used part and the size in Shopify's field, and leftOf finds what is left in a
// member of the drafts' list.
var (
	usedOf = regexp.MustCompile(`^(\d+)/(\d+)$`)
	leftOf = regexp.MustCompile(`;\s*r=(\d+)`)
)

// Remaining returns the least count that a header reports as left, in any of this package's styles,
// and whether there is one.
func Remaining(h http.Header) (least int, ok bool) {
	note := func(text string) {
		if n, err := strconv.Atoi(text); err == nil && (!ok || n < least) {
			least, ok = n, true
		}
	}
	for name, values := range h {
		value := strings.Join(values, ", ")
		switch {
		case strings.Contains(name, "Remaining"):
			note(value)
		case name == "Ratelimit":
			for _, member := range leftOf.FindAllStringSubmatch(value, -1) {
				note(member[1])
			}
		default:
			if m := usedOf.FindStringSubmatch(value); m != nil && strings.HasSuffix(name, "-Limit") {
				used, _ := strconv.Atoi(m[1])
				all, _ := strconv.Atoi(m[2])
				note(strconv.Itoa(all - used))
			}
		}
	}
	return least, ok
}
