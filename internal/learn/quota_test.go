package learn

import (
	"testing"
	"time"
)

// The same limit has one key in all answers, whatever is left of it. A window or, without a name, a limit of another size
// is another quota.
func TestKeyIdentifiesAQuota(t *testing.T) {
	day := Quota{Name: "day", Limit: 100, HasLimit: true, Window: time.Hour, HasWindow: true}
	for name, test := range map[string]struct {
		change func(q *Quota)
		same   bool
	}{
		"fewer left":                {func(q *Quota) { q.Remaining, q.HasRemaining = 7, true }, true},
		"another limit":             {func(q *Quota) { q.Limit = 50 }, true},
		"another window":            {func(q *Quota) { q.Window = time.Minute }, false},
		"another name":              {func(q *Quota) { q.Name = "hour" }, false},
		"another unit":              {func(q *Quota) { q.Unit = "tokens" }, false},
		"a limit instead of a name": {func(q *Quota) { q.Name = "" }, false},
	} {
		q := day
		if test.change(&q); (q.Key() == day.Key()) != test.same || q.Key() == 0 {
			t.Errorf("%s: key %x beside %x, want the same: %v", name, q.Key(), day.Key(), test.same)
		}
	}
	if small, large := (&Quota{Limit: 5, HasLimit: true}).Key(), (&Quota{Limit: 6, HasLimit: true}).Key(); small == large {
		t.Error("two limits without a name have one key")
	}
}

// The fewest remaining permits count, of quotas that count calls. Garbage, tokens and places are left out.
func TestLeftIsOfQuotasThatCountCalls(t *testing.T) {
	of := func(unit string, left float64) Quota { return Quota{Unit: unit, Remaining: left, HasRemaining: true} }
	quotas := []Quota{of("tokens", 1), of("concurrent-requests", 2), of("", -1), of("", 2*mostPermits), {Limit: 3, HasLimit: true}}
	if left, ok := Left(quotas); ok {
		t.Errorf("%.0f calls are left, want no report", left)
	}
	if left, ok := Left(append(quotas, of("requests", 9), of("", 5))); left != 5 || !ok {
		t.Errorf("%.0f calls are left, reported %v, want 5", left, ok)
	}
}
