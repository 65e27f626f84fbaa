package headers

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

// What the fast reading of a date accepts, package time reads in the same way; and it accepts all
// dates as net/http writes them.
func TestFixdate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		date := time.Unix(rng.Int64N(1<<33), 0).UTC()
		text := []byte(date.Format(http.TimeFormat))
		if got, ok := parseFixdate(string(text)); !ok || !got.Equal(date) {
			t.Fatalf("%s: %v, %t", text, got, ok)
		}
		text[rng.IntN(len(text))] = "0123456789 :,aFGJMST"[rng.IntN(20)]
		want, err := time.Parse(http.TimeFormat, string(text))
		if got, ok := parseFixdate(string(text)); ok && (err != nil || !got.Equal(want)) {
			t.Fatalf("%s: %v, want %v, %v", text, got, want, err)
		}
	}
	for _, text := range []string{"Fri, 20  Nov2026 12:00:00 GMT", "Fri, 20 ov D2026 12:00:00 GMT"} { // a month's name across two
		if got, ok := parseFixdate(text); ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}
