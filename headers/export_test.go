package headers

import "iter"

// Vendors returns the names of the vendors of the table.
func Vendors() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range vendors {
			if !yield(vendors[i].Vendor) {
				return
			}
		}
	}
}
