// Package vendors has presets for well-known APIs: their limits, what shares a
// limit, what a call costs, and what may be repeated.
//
//	client := &http.Client{Transport: vendors.GitHub().Transport()}
//
// # Where the numbers come from
//
// Each [Number] has the address of the page that states it, and the day on which that page, or its
// copy, was last read. A vendor that publishes no number has a row without one. Its limit is
// learned from the answers, as for the zero [weir.Transport]. All numbers are in docs/vendors.md.
//
// # Plans
//
// Where a limit depends on the plan, the number is that of the lowest documented
// one. Change it before you call [Preset.Transport]:
//
//	p := vendors.HubSpot()
//	p.Numbers[0].Most = 190 // a Professional account
//	client := &http.Client{Transport: p.Transport()}
//
// Or change the [weir.Transport] that it returns: its Limits are a plain list.
//
// # How safe a preset is
//
// A preset's limits stay below each of its numbers in every window, also if some calls
// reach the vendor later than others: see [Number.Limit]. This holds for one Transport: make one
// for all calls, and set Store for a fleet. If a number is wrong, or others spend of the same
// quota, the lane learns the rest from refusals. Each host and each credential of an account
// has a lane, and so has a token that was refreshed: set Key to the account, or Share to a part.
//
// # When not to use it
//
// If your contract states other limits, a plain [weir.Transport] is shorter. For a
// self-hosted GitLab or GitHub, ask its administrator for the numbers.
package vendors
