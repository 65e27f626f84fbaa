// Command table reads what go test -bench prints and writes the medians as
// Markdown:
//
//	go -C internal/peerbench test -run '^$' -bench . -count 5 | go -C internal/peerbench run ./table
//
// A benchmark is a table, its first row the base: ns/op of the others is also
// given as a multiple of it and as what is added to it, in the same run. Where
// names end in a number of goroutines, g=1 and g=64, these become columns.
package main

import (
	"fmt"
	"os"
)

func main() {
	tables, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, t := range tables {
		t.write(os.Stdout)
	}
}
