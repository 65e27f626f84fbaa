package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A sheet is a growing table: figures of each contender, run by run.
type sheet struct {
	out     io.Writer
	columns []column
	rows    []string
	runs    map[string][][]float64
}

// A column is one figure.
type column struct {
	name     string
	decimals int
}

// none stands for a figure that a contender lacks.
var none = math.NaN()

// newSheet writes the title and the heading.
func newSheet(out io.Writer, title string, columns ...column) *sheet {
	s := &sheet{out: out, columns: columns, runs: make(map[string][][]float64)}
	fmt.Fprintf(out, "%s\n\n", title)
	s.heading()
	return s
}

// add takes and writes the figures of one run, in the order of the columns.
func (s *sheet) add(row string, figures ...float64) {
	if !slices.Contains(s.rows, row) {
		s.rows = append(s.rows, row)
	}
	s.runs[row] = append(s.runs[row], figures)
	s.write(fmt.Sprintf("%s (run %d)", row, len(s.runs[row])), figures)
}

// close writes the median of each figure.
func (s *sheet) close() {
	fmt.Fprintln(s.out)
	s.heading()
	for _, row := range s.rows {
		medians := make([]float64, len(s.columns))
		for i := range medians {
			medians[i] = median(s.runs[row], i)
		}
		s.write(row, medians)
	}
	fmt.Fprintln(s.out)
}

func (s *sheet) heading() {
	head, rule := "|", "|---"
	for _, c := range s.columns {
		head, rule = head+" | "+c.name, rule+"|---"
	}
	fmt.Fprintf(s.out, "%s |\n%s|\n", head, rule)
}

func (s *sheet) write(row string, figures []float64) {
	cells := []string{row}
	for i, c := range s.columns {
		cell := fmt.Sprintf("%.*f", c.decimals, figures[i])
		if math.IsNaN(figures[i]) {
			cell = ""
		}
		cells = append(cells, cell)
	}
	fmt.Fprintf(s.out, "| %s |\n", strings.Join(cells, " | "))
}

func median(runs [][]float64, figure int) float64 {
	var values []float64
	for _, run := range runs {
		values = append(values, run[figure])
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
