package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A display shows a run while it lasts. It is safe for concurrent use.
type display interface {
	every() time.Duration // between two shows
	show(sight)
	note(text string) // of a fault
	end(sight)
}

// newDisplay returns a live one for a terminal with room for it, and lines for
// anything else.
func newDisplay(w io.Writer, replicas int) display {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > replicas+4 {
			return &live{w: f, begun: time.Now(), colours: os.Getenv("NO_COLOR") == ""}
		}
	}
	return &lines{w: w, begun: time.Now()}
}

// Lines are a display for a file or a pipe: one a second.
type lines struct {
	mu    sync.Mutex
	w     io.Writer
	begun time.Time
}

func (l *lines) every() time.Duration { return time.Second }

func (l *lines) show(s sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var each []string
	for _, r := range s.replicas {
		each = append(each, fmt.Sprint(r.lately))
	}
	fmt.Fprintf(l.w, "%5.1f s  %s  each %s  %s\n", s.at.Seconds(), s.summary(), strings.Join(each, " "), s.states())
}

func (l *lines) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "%5.1f s  %s\n", time.Since(l.begun).Seconds(), text)
}

func (l *lines) end(sight) {}

// Live is a display for a terminal: one line per replica, redrawn in place. Notes are above it.
type live struct {
	mu      sync.Mutex
	w       *os.File
	begun   time.Time
	colours bool
	drawn   int // lines, to be drawn over
	last    sight
}

func (l *live) every() time.Duration { return 200 * time.Millisecond }

func (l *live) show(s sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = s
	l.draw("")
}

func (l *live) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(fmt.Sprintf("%5.1f s  %s\n", time.Since(l.begun).Seconds(), text))
}

func (l *live) end(s sight) { l.show(s) }

// The sequences of a terminal (ECMA-48).
const (
	upBy      = "\x1b[%dA\r"
	clearDown = "\x1b[J"
	plain     = "\x1b[0m"
	dim       = "\x1b[2m"
	red       = "\x1b[31m"
	green     = "\x1b[32m"
	yellow    = "\x1b[33m"
	blue      = "\x1b[34m"
)

// draw writes everything at once, so that nothing flickers. The caller holds the
// lock.
func (l *live) draw(above string) {
	var b bytes.Buffer
	if l.drawn > 0 {
		fmt.Fprintf(&b, upBy, l.drawn)
	}
	b.WriteString(clearDown + above)
	l.drawn = 0
	if l.last.limit > 0 {
		for _, line := range l.picture(l.last, l.columns()) {
			b.WriteString(line + "\n")
			l.drawn++
		}
	}
	_, _ = l.w.Write(b.Bytes()) // a closed terminal is no reason to stop
}

func (l *live) columns() int {
	if columns, _, err := term.GetSize(int(l.w.Fd())); err == nil {
		return columns
	}
	return 80
}

// picture returns the lines, narrower than the terminal if that has 60 columns.
func (l *live) picture(s sight, columns int) []string {
	const besides = 48 // of a line, beside the bar
	width := min(40, columns-besides)
	scale := 2 * s.limit / float64(len(s.replicas)) // a fair share is half a bar
	for _, r := range s.replicas {
		scale = max(scale, float64(r.lately))
	}
	out := make([]string, 0, len(s.replicas)+2)
	for i, r := range s.replicas {
		out = append(out, fmt.Sprintf(" %2d %s %4d/s %7d  %s",
			i+1, l.paint(blue, bar(float64(r.lately)/scale, width)), r.lately, r.total, l.paint(colourOf(r.state), r.state)))
	}
	out = append(out, fmt.Sprintf("all %s %4d/s %7d",
		l.paint(green, bar(float64(s.lately)/max(s.limit, float64(s.lately)), width)), s.lately, s.total))
	last := fmt.Sprintf("%.1f s of %v  %s", s.at.Seconds(), s.length, s.summary())
	if len(last) >= columns {
		last = last[:max(0, columns-4)] + "..."
	}
	return append(out, last)
}

func (l *live) paint(colour, text string) string {
	if !l.colours {
		return text
	}
	return colour + text + plain
}

func colourOf(state string) string {
	switch state {
	case "shared":
		return dim
	case "paused":
		return yellow
	default:
		return red
	}
}

// bar returns a bar of the width for 1, in eighths of a column.
func bar(part float64, width int) string {
	if width < 1 {
		return ""
	}
	eighths := int(part * float64(8*width))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return text + strings.Repeat(" ", max(0, width-len([]rune(text))))
}
