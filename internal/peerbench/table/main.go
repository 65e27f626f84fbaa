// Command table reads the output of go test -bench and writes the medians as Markdown:
//
//	go -C internal/peerbench test -run '^$' -bench . -count 5 | go -C internal/peerbench run ./table
//
// A benchmark is a table, its first row the base: ns/op of the others is also a multiple of it and
// a difference to it, in the same run. If names end in a number of goroutines, g=1 and g=64, these
// become columns. With -without B/op the columns of that unit are left out.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	without := flag.String("without", "", "`unit` whose columns are left out")
	flag.Parse()
	tables, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, t := range tables {
		t.columns = slices.DeleteFunc(t.columns, func(c column) bool { return c.unit == *without })
		t.write(os.Stdout)
	}
}
