package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A table is one benchmark: its rows and columns in the order in which they
// were read.
type table struct {
	name    string
	rows    []string
	columns []column
	values  map[cell][]float64
}

// A column is one unit, for a number of goroutines if the name has one.
type column struct{ unit, goroutines string }

type cell struct {
	row string
	column
}

const nanoseconds = "ns/op"

// procs is the suffix that go test adds to names unless GOMAXPROCS is 1.
var procs = regexp.MustCompile(`-\d+$`)

// read reads the lines with results and skips all others.
func read(r io.Reader) ([]*table, error) {
	var tables []*table
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, row, _ := strings.Cut(strings.TrimPrefix(procs.ReplaceAllString(fields[0], ""), "Benchmark"), "/")
		i := slices.IndexFunc(tables, func(t *table) bool { return t.name == name })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &table{name: name, values: map[cell][]float64{}})
		}
		if err := tables[i].add(row, fields[2:]); err != nil {
			return nil, fmt.Errorf("%s: %w", fields[0], err)
		}
	}
	return tables, lines.Err()
}

// add applies the values of one line, pairs of a number and its unit.
func (t *table) add(row string, fields []string) error {
	row, goroutines, _ := strings.Cut(row, "/g=")
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	for pair := range slices.Chunk(fields, 2) {
		value, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			return err
		}
		if len(pair) < 2 {
			return fmt.Errorf("value %s has no unit", pair[0])
		}
		c := column{pair[1], goroutines}
		if !slices.Contains(t.columns, c) {
			t.columns = append(t.columns, c)
		}
		t.values[cell{row, c}] = append(t.values[cell{row, c}], value)
	}
	return nil
}

// median returns the median of a cell.
func (t *table) median(row string, c column) (float64, bool) {
	values := slices.Sorted(slices.Values(t.values[cell{row, c}]))
	if len(values) == 0 {
		return 0, false
	}
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2, true
}

// write writes the medians. If a benchmark reports units of its own, ns/op is meaningless and left
// out.
func (t *table) write(w io.Writer) {
	columns := slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool { return c.unit == nanoseconds && t.custom() })
	head, rule := "| "+t.name, "|---"
	for _, c := range columns {
		label := c.unit
		if c.goroutines != "" {
			label += ", " + c.goroutines
		}
		head, rule = head+" | "+label, rule+"|---"
		if c.unit == nanoseconds {
			head, rule = head+" | x first | + first", rule+"|---|---"
		}
	}
	fmt.Fprintf(w, "%s |\n%s|\n", head, rule)
	for _, row := range t.rows {
		fmt.Fprintf(w, "| %s", row)
		for _, c := range columns {
			fmt.Fprintf(w, " | %s", t.text(row, c))
		}
		fmt.Fprintln(w, " |")
	}
	fmt.Fprintln(w)
}

// custom reports whether the benchmark reports units of its own.
func (t *table) custom() bool {
	return slices.ContainsFunc(t.columns, func(c column) bool { return !strings.HasSuffix(c.unit, "/op") })
}

// text returns the cells of one row in one column, compared with the first row if they are
// nanoseconds.
func (t *table) text(row string, c column) string {
	value, ok := t.median(row, c)
	if !ok {
		return ""
	}
	text := strconv.FormatFloat(value, 'f', decimals(value), 64)
	if base, ok := t.median(t.rows[0], c); ok && c.unit == nanoseconds {
		text += fmt.Sprintf(" | %.2f | %.0f", value/base, value-base)
	}
	return text
}

// decimals keeps at least three figures.
func decimals(v float64) int {
	switch {
	case v == float64(int64(v)) || v >= 1000:
		return 0
	case v >= 100:
		return 1
	default:
		return 2
	}
}
