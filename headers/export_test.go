package headers

import (
	"encoding/json"
	"iter"
)

// Vendors returns the names of the vendors in the files, and when their sources
// were read.
func Vendors() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		more := true
		_ = eachRow(json.Unmarshal, func(r *row) error {
			more = more && yield(r.Vendor, r.Read)
			return nil
		})
	}
}
