package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirgo/weir/internal/testserver"
)

// says are the ways in which the vendor reports its state.
var says = map[string][]testserver.Style{
	"coarse":     {testserver.Coarse},
	"bare":       nil,
	"seconds":    {testserver.RetryAfterSeconds},
	"ms":         {testserver.RetryAfterMillis},
	"xratelimit": {testserver.XRateLimitEpoch, testserver.RetryAfterSeconds},
	"ietf":       {testserver.RateLimit, testserver.RetryAfterSeconds},
}

// styleOf returns the styles of a word.
func styleOf(word string) ([]testserver.Style, error) {
	styles, ok := says[word]
	if !ok {
		return nil, fmt.Errorf("-says %q: want one of %s", word, strings.Join(slices.Sorted(maps.Keys(says)), ", "))
	}
	return styles, nil
}
