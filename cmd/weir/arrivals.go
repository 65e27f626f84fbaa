package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A source is a file of arrivals.
type source struct {
	path   string // "-": standard input
	format string // "csv", "log", or "" to tell by the file's name and first line
	column string // of a CSV, by its name or its number from 1; "": the first one
}

// read returns the instants of the arrivals, in order.
func (s source) read(stdin io.Reader) ([]time.Time, error) {
	in := stdin
	if s.path != "-" {
		file, err := os.Open(s.path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	buffered := bufio.NewReader(in)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" { // spreadsheets write it before the first name
		_, _ = buffered.Discard(len(mark))
	}
	read := s.readCSV
	if s.isLog(buffered) {
		read = s.readLog
	}
	times, err := read(buffered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("%s: no times", s.path)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times, nil
}

// isLog reports whether the file is an access log.
func (s source) isLog(in *bufio.Reader) bool {
	if s.format != "" || filepath.Ext(s.path) == ".csv" || s.column != "" {
		return s.format == "log"
	}
	first, _ := in.Peek(4 << 10)
	line, _, _ := strings.Cut(string(first), "\n")
	return logTime.MatchString(line)
}

// logTime is the time in the common and the combined format of access logs:
// [10/Oct/2000:13:55:36 -0700].
var logTime = regexp.MustCompile(`\[(\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4})\]`)

// readLog reads the times of an access log.
func (s source) readLog(in *bufio.Reader) (times []time.Time, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	n := 1
	for ; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		found := logTime.FindStringSubmatch(lines.Text())
		if found == nil {
			return nil, fmt.Errorf("line %d: no time such as [10/Oct/2000:13:55:36 -0700] in %.80q", n, lines.Text())
		}
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", found[1])
		if err == nil {
			err = checkTime(at)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		times = append(times, at)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n, err)
	}
	return times, nil
}

// readCSV reads a column of times. A first line that names the columns is left out.
func (s source) readCSV(in *bufio.Reader) (times []time.Time, err error) {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	column := 0
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return times, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		if first {
			if column, err = s.columnOf(row); err != nil {
				return nil, err
			}
		}
		if column >= len(row) {
			return nil, fmt.Errorf("line %d: no column %d", line, column+1)
		}
		text := strings.TrimSpace(row[column])
		at, err := parseTime(text)
		switch {
		case err == nil:
			times = append(times, at)
		case !first || text != "" && isDigit(rune(text[0])): // the first line may name the columns
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// columnOf returns the index of the column, given the first row.
func (s source) columnOf(row []string) (int, error) {
	if s.column == "" {
		return 0, nil
	}
	if i := slices.Index(row, s.column); i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(s.column)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("no column %q in %q", s.column, row)
	}
	return n - 1, nil
}

// parseTime reads RFC 3339, also with a space for the T, and without a zone, which means UTC. It
// also reads seconds, milliseconds, microseconds or nanoseconds since 1970, distinguished by their
// size.
func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", time.DateTime} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, checkTime(t)
		}
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || strings.ContainsFunc(fraction, func(c rune) bool { return !isDigit(c) }) {
		return time.Time{}, fmt.Errorf("%q is not a time in RFC 3339 or since 1970", s)
	}
	part, _ := strconv.ParseFloat("0."+fraction+"0", 64)
	unit := time.Second
	for n > 100_000_000_000 && unit > 1 { // in seconds, the year 5138
		n, part, unit = n/1000, (float64(n%1000)+part)/1000, unit/1000
	}
	at := time.Unix(n, int64(math.Round(part*1e9))).UTC()
	return at, checkTime(at)
}

func isDigit(c rune) bool { return '0' <= c && c <= '9' }

// checkTime returns an error for a time of no call. Durations hold 292 years, with the waits.
func checkTime(t time.Time) error {
	if year := t.UTC().Year(); year < 1970 || year >= 2200 {
		return fmt.Errorf("%v is not between 1970 and 2200", t.Format(time.RFC3339))
	}
	return nil
}

// spread moves the calls of each second apart evenly, if all times are whole seconds: a log
// does not say when in its second a call came. It reports whether they are.
func spread(times []time.Time) bool {
	if slices.ContainsFunc(times, func(t time.Time) bool { return t.Nanosecond() != 0 }) {
		return false
	}
	for i := 0; i < len(times); {
		n := 1
		for i+n < len(times) && times[i+n].Equal(times[i]) {
			n++
		}
		for k := range n {
			times[i+k] = times[i+k].Add(time.Second * time.Duration(k) / time.Duration(n))
		}
		i += n
	}
	return true
}
