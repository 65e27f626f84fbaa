package weir

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Validate returns all faults of the fields, joined, each with its field and value; nil: none. A
// program calls it at its start: otherwise requests fail, or a field counts as if it were zero. It
// sends nothing, and asks LimitsFor for the limits of the key "". It is safe for concurrent use.
func (t *Transport) Validate() error {
	t.applied.mu.Lock() // Apply may set fields meanwhile
	now := t.program()
	t.applied.mu.Unlock()
	like := &Transport{Store: t.Store, LimitsFor: t.LimitsFor, Cost: now.cost}
	like.take(&now.fields)
	var errs []error
	for _, f := range like.faults() {
		errs = append(errs, fmt.Errorf("weir: %s%s%w", f.field, f.colon, f.err))
	}
	return errors.Join(errs...)
}

// A fault is an invalid field.
type fault struct {
	field string
	err   error
	colon string // between the two, in the error of Validate
}

// faults returns all faults of the fields.
func (t *Transport) faults() []fault {
	faults := t.wrongLimits()
	wrong := func(is bool, field, format string, args ...any) {
		if is {
			faults = append(faults, fault{field, fmt.Errorf(format, args...), " "})
		}
	}
	negative := func(field string, n int64, value any) { wrong(n < 0, field, "%v is negative", value) }
	negative("Line.MaxWaiting", int64(t.Line.MaxWaiting), t.Line.MaxWaiting)
	negative("Line.MaxWait", int64(t.Line.MaxWait), t.Line.MaxWait)
	negative("InFlight.Max", int64(t.InFlight.Max), t.InFlight.Max)
	negative("InFlight.Shared", int64(t.InFlight.Shared), t.InFlight.Shared)
	negative("InFlight.Reserve", int64(t.InFlight.Reserve), t.InFlight.Reserve)
	f := t.InFlight
	wrong(f.Reserve > 0 && f.Reserve >= f.Max && (f.Max > 0 || f.Shared <= 0), "InFlight.Reserve", "%d leaves none of InFlight.Max %d to other requests", f.Reserve, f.Max)
	wrong(f.Reserve > 0 && f.Reserve >= f.Shared && f.Shared > 0, "InFlight.Reserve", "%d leaves none of InFlight.Shared %d to other requests", f.Reserve, f.Shared)
	negative("Line.MaxWaitingBytes", t.Line.MaxWaitingBytes, t.Line.MaxWaitingBytes)
	negative("Line.MaxForecast", int64(t.Line.MaxForecast), t.Line.MaxForecast)
	negative("MaxPause", int64(t.MaxPause), t.MaxPause)
	negative("MaxLanes", int64(t.MaxLanes), t.MaxLanes)
	wrong(t.Line.Overflow > shaping.OverflowShedOldest, "Line.Overflow", "%d is unknown", t.Line.Overflow)
	wrong(t.Learn > LearnOff, "Learn", "%d is unknown", t.Learn)
	wrong(!(t.Line.LowPriorityShare <= 1), "Line.LowPriorityShare", "%v is not a share", t.Line.LowPriorityShare)
	wrong(!(t.Share >= 0 && t.Share <= 1), "Share", "%v is not between 0 and 1", t.Share)
	wrong(t.Share > 0 && t.Share < 1 && t.Learn == LearnOff && !t.WaitForReset, "Share", "%v needs Learn or WaitForReset", t.Share)
	if _, ok := t.Store.(store.FlightStore); !ok {
		wrong(t.InFlight.Shared > 0, "InFlight.Shared", "is %d, but the store, %T, does not bound calls in flight across processes", t.InFlight.Shared, t.Store)
	}
	r := cmp.Or(t.Retry, new(backoff.Policy))
	negative("Retry.Attempts", int64(r.Attempts), r.Attempts)
	negative("Retry.MaxElapsed", int64(r.MaxElapsed), r.MaxElapsed)
	negative("Retry.AttemptTimeout", int64(r.AttemptTimeout), r.AttemptTimeout)
	wrong(r.BudgetShare != r.BudgetShare, "Retry.BudgetShare", "is no number")
	wrong(r.BudgetPerSecond != r.BudgetPerSecond, "Retry.BudgetPerSecond", "is no number")
	return faults
}

// wrongLimits returns the faults in the limits of each field.
func (t *Transport) wrongLimits() (faults []fault) {
	lists := map[string][]throttle.Limit{"Limits": t.Limits}
	if t.LimitsFor != nil {
		lists[`LimitsFor("")`] = t.LimitsFor("")
	}
	lists["Shadow"] = t.Shadow
	for _, field := range []string{"Limits", `LimitsFor("")`, "Shadow"} {
		if _, err := throttle.Resolve(lists[field]...); err != nil {
			faults = append(faults, fault{field, err, ": "})
		}
		for _, l := range lists[field] {
			if strings.ContainsAny(l.Unit, " \t") {
				faults = append(faults, fault{field, fmt.Errorf("unit %q has a space", l.Unit), ": "})
			}
			if t.Cost == nil && ofOtherUnit(l) {
				faults = append(faults, fault{field, fmt.Errorf("unit %q without a Cost: a request costs one", l.Unit), ": "})
			}
		}
	}
	return faults
}
