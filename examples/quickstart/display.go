package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A display shows the progress of a run.
type display interface {
	every() time.Duration // between two shows
	show(calls, refused int)
	end()
}

// newDisplay returns a bar for a terminal and lines for anything else.
func newDisplay(w io.Writer, name string, calls int) display {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		return newBar(w, name, calls)
	}
	return &lines{w: w, name: name, calls: calls, start: time.Now()}
}

// watch shows sample's result until stop is called, and once more then.
func watch(d display, sample func() (calls, refused int)) (stop func()) {
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(d.every())
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				d.show(sample())
			case <-done:
				d.show(sample())
				d.end()
				return
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
	}
}

// A bar is a display for a terminal.
type bar struct {
	name string
	bar  *progressbar.ProgressBar
	w    io.Writer
}

func newBar(w io.Writer, name string, calls int) *bar {
	return &bar{name: name, w: w, bar: progressbar.NewOptions(calls,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
	)}
}

func (b *bar) every() time.Duration { return 100 * time.Millisecond }

func (b *bar) show(calls, refused int) {
	b.bar.Describe(fmt.Sprintf("%-6s  %4d 429s ", b.name, refused))
	_ = b.bar.Set(calls) // a closed terminal is no reason to stop
}

func (b *bar) end() {
	_ = b.bar.Exit()
	fmt.Fprintln(b.w)
}

// Lines are a display for a file or a pipe.
type lines struct {
	w     io.Writer
	name  string
	calls int
	start time.Time
}

func (l *lines) every() time.Duration { return time.Second }

func (l *lines) show(calls, refused int) {
	fmt.Fprintf(l.w, "%-6s  %5.1f s  %*d/%d calls  %d 429s\n",
		l.name, time.Since(l.start).Seconds(), len(fmt.Sprint(l.calls)), calls, l.calls, refused)
}

func (l *lines) end() {}
