package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// serve serves the page until the test ends, and returns its address.
func serve(t *testing.T, lanes int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener, lanes, true) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/"
}

// waitFor returns once the page shows so many lanes.
func waitFor(t *testing.T, url string, lanes int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(text), fmt.Sprintf("<b>%d</b> lanes", lanes)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the page does not show %d lanes:\n%s", lanes, text)
		}
	}
}

// A browser runs the script of the page, which its policy allows: each lane that is shown has
// two charts and, because all may operate here, a button.
func TestBrowserDrawsThePage(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		why, tried := os.LookupEnv("WEIR_NO_BROWSER")
		if os.Getenv("CI") != "" && !tried {
			t.Fatal(err)
		}
		t.Skipf("there is no chromium. %s", why)
	}
	for _, lanes := range []int{3, 10_000} {
		url := serve(t, lanes)
		waitFor(t, url, lanes)
		page := browse(t, chromium, url, fmt.Sprintf("page-%d.png", lanes))
		shown := min(lanes, 100)
		if n := strings.Count(page, "<polyline"); n != 2*shown {
			t.Errorf("with %d lanes the page has %d charts, want two for each of %d", lanes, n, shown)
		}
		if n := strings.Count(page, `class="act"`); n != shown {
			t.Errorf("with %d lanes the page has %d buttons, want one for each of %d", lanes, n, shown)
		}
		if !strings.Contains(page, `id="limits">`) || !strings.Contains(page, fmt.Sprintf("<b>%d</b> lanes", lanes)) || !strings.Contains(page, `role="status"></span>`) {
			t.Errorf("with %d lanes the page is:\n%.2000s", lanes, page)
		}
	}
}

// browse returns the page as the browser has it after four seconds of its time. If WEIR_SHOTS
// names a directory, it also takes a picture there.
func browse(t *testing.T, chromium, url, picture string) string {
	t.Helper()
	flags := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir(), "--virtual-time-budget=4000"}
	if dir := os.Getenv("WEIR_SHOTS"); dir != "" {
		shot := []string{"--window-size=1300,900", "--screenshot=" + filepath.Join(dir, picture), url}
		if out, err := exec.Command(chromium, slices.Concat(flags, shot)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	out, err := exec.Command(chromium, append(flags, "--dump-dom", url)...).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(out)
}
