package pauses_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/shaping"
)

// A bucketVendor counts as Discord does: five calls in five seconds for each bucket and channel,
// fifty in any second for all, with the bucket's name in each answer.
type bucketVendor struct {
	mu         sync.Mutex
	windows    map[string]*bucketWindow
	sent       []time.Time // served in the last second
	refused    map[string]int
	flips      int
	global     int            // calls a second of all buckets together; zero: any number
	inFlight   map[string]int // by path
	sublimited bool           // another limit refuses /a for ten minutes
	most       map[string]int
}

type bucketWindow struct {
	left  int
	reset time.Time
}

// bucketOf returns the bucket's name and the key of its count.
func (v *bucketVendor) bucketOf(path string) (name, counted string) {
	segments := strings.Split(path, "/")
	switch {
	case strings.Contains(path, "/channels/"):
		return "hc", "hc " + segments[4]
	case strings.HasSuffix(path, "/flips"):
		if v.flips++; v.flips%2 == 0 {
			return "h1", "h1"
		}
		return "h3", "h3"
	case strings.HasSuffix(path, "/a"), strings.HasSuffix(path, "/b"):
		return "h1", "h1"
	}
	return "h2", "h2"
}

func (v *bucketVendor) RoundTrip(req *http.Request) (*http.Response, error) {
	v.mu.Lock()
	v.inFlight[req.URL.Path]++
	v.most[req.URL.Path] = max(v.most[req.URL.Path], v.inFlight[req.URL.Path])
	v.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inFlight[req.URL.Path]--
	now := time.Now()
	name, counted := v.bucketOf(req.URL.Path)
	w := v.windows[counted]
	if w == nil || !now.Before(w.reset) {
		w = &bucketWindow{5, now.Add(5 * time.Second)}
		v.windows[counted] = w
	}
	header := http.Header{"X-Ratelimit-Bucket": {name}, "X-Ratelimit-Limit": {"5"}}
	for len(v.sent) > 0 && now.Sub(v.sent[0]) >= time.Second {
		v.sent = v.sent[1:]
	}
	status := http.StatusOK
	switch {
	case v.global > 0 && len(v.sent) >= v.global:
		status = http.StatusTooManyRequests
		header.Set("X-Ratelimit-Global", "true")
		header.Set("Retry-After", "1")
		v.refused["global"]++
	case strings.HasSuffix(req.URL.Path, "/a") && v.sublimited:
		status = http.StatusTooManyRequests
		header.Set("Retry-After", "600")
	case w.left == 0:
		status = http.StatusTooManyRequests
		header.Set("Retry-After", strconv.FormatFloat(w.reset.Sub(now).Seconds()+0.001, 'f', 3, 64))
		v.refused[counted]++
	default:
		w.left--
		v.sent = append(v.sent, now)
	}
	header.Set("X-Ratelimit-Remaining", strconv.Itoa(w.left))
	header.Set("X-Ratelimit-Reset-After", strconv.FormatFloat(w.reset.Sub(now).Seconds(), 'f', 3, 64))
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// bucketRig returns a vendor and a client to it.
func bucketRig(t *testing.T) (*bucketVendor, *http.Client) {
	v := &bucketVendor{
		windows: make(map[string]*bucketWindow), refused: make(map[string]int),
		inFlight: make(map[string]int), most: make(map[string]int),
	}
	transport := &weir.Transport{Base: v, Logger: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() { transport.Close() })
	return v, &http.Client{Transport: transport}
}

// get requests a path and returns how long it took.
func (v *bucketVendor) get(t *testing.T, client *http.Client, path string) time.Duration {
	return v.ask(context.Background(), t, client, path)
}

// ask is get with a context.
func (v *bucketVendor) ask(ctx context.Context, t *testing.T, client *http.Client, path string) time.Duration {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://discord.com/api/v10"+path, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Errorf("GET %s: %v", path, err)
		return 0
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("GET %s: %s", path, resp.Status)
	}
	return time.Since(began)
}

// A spent bucket delays no other, though their routes share a lane; each route is refused once at
// most.
func TestBucketsOfOneHostAreHeldAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, client := bucketRig(t)
		began := time.Now()
		ends := make(map[string]time.Duration)
		var mu sync.Mutex
		var wg sync.WaitGroup
		paths := map[string]int{"/a": 10, "/b": 10, "/c": 10, "/d": 10}
		for channel := range 20 {
			paths[fmt.Sprintf("/channels/10000%d/messages", channel)] = 12
		}
		for path, n := range paths {
			wg.Go(func() {
				for range n {
					v.get(t, client, path)
				}
				mu.Lock()
				ends[path] = time.Since(began)
				mu.Unlock()
			})
		}
		wg.Wait()
		for path, n := range paths {
			// Windows of five in five seconds; /a with /b, and /c with /d, share twenty.
			want := time.Duration((n-1)/5) * 5 * time.Second
			if !strings.HasPrefix(path, "/channels") {
				want = 15 * time.Second
			}
			if got := ends[path]; got > want+6*time.Second {
				t.Errorf("%d calls of %s took %v, want about %v", n, path, got, want)
			}
		}
		for counted, n := range v.refused {
			if routes := map[bool]int{true: 1, false: 2}[strings.HasPrefix(counted, "hc")]; n > routes {
				t.Errorf("bucket %q refused %d calls, want one for each of its %d routes at most", counted, n, routes)
			}
		}
	})
}

// A route whose answers name one bucket and then another is bound by both.
func TestFlappingBucketHoldsByBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, client := bucketRig(t)
		for range 30 {
			v.get(t, client, "/flips")
		}
		if n := v.refused["h1"] + v.refused["h3"]; n > 2 {
			t.Errorf("%d calls were refused, want 2 at most", n)
		}
		for range 5 {
			v.get(t, client, "/a") // the same bucket
		}
		if n := v.refused["h1"] + v.refused["h3"]; n > 2 {
			t.Errorf("with another route of a bucket %d calls were refused, want 2 at most", n)
		}
	})
}

// An unknown route sends one call until it is answered, once the host names buckets.
func TestUnknownRouteSendsOneCallFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, client := bucketRig(t)
		for range 4 {
			v.get(t, client, "/a")
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { v.get(t, client, "/c") })
		}
		synctest.Wait()
		v.mu.Lock()
		n := v.most["/api/v10/c"]
		v.mu.Unlock()
		if n != 1 {
			t.Errorf("%d calls of an unknown route flew at first, want 1", n)
		}
		wg.Wait()
	})
}

// A limit of one route that is not reported delays no other route of the bucket.
func TestSublimitHoldsRouteAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, client := bucketRig(t)
		for _, path := range []string{"/a", "/b"} {
			v.get(t, client, path)
		}
		v.sublimited = true
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://discord.com/api/v10/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
		}
		if took := v.get(t, client, "/b"); took > time.Second {
			t.Errorf("the other route of the bucket took %v", took)
		}
	})
}

// Under a limit of the whole host buckets still delay their calls, and the host's limit is found.
func TestBucketsBelowGlobalLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, client := bucketRig(t)
		v.global = 50
		began := time.Now()
		var wg sync.WaitGroup
		for channel := range 20 {
			wg.Go(func() {
				for range 24 {
					v.get(t, client, fmt.Sprintf("/channels/10000%d/messages", channel))
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > time.Minute { // of 80 runs one took 46 s, and another 40
			t.Errorf("24 calls in each of 20 channels took %v, want about 20s", took)
		}
		for counted, n := range v.refused {
			if most := map[bool]int{true: 60, false: 6}[counted == "global"]; n > most { // of 300 runs half refused 28 or more, and two 41; 47 were seen
				t.Errorf("%q refused %d calls, want %d at most", counted, n, most)
			}
		}
	})
}

// GitHub names a resource: spent search does not stop the rest, though the refusal has no scope.
func TestSpentResourceStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		left := map[string]int{"/search/code": 10, "/repos/a/b": 5000}
		names := map[string]string{"/search/code": "code_search", "/repos/a/b": "core"}
		limits := map[string]string{"/search/code": "10", "/repos/a/b": "5000"}
		reset := time.Now().Add(time.Minute)
		transport := &weir.Transport{Logger: slog.New(slog.DiscardHandler), Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			path, status := req.URL.Path, 200
			if left[path] == 0 {
				status = 403
			} else {
				left[path]--
			}
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{
				"X-Ratelimit-Resource": {names[path]}, "X-Ratelimit-Limit": {limits[path]}, "X-Ratelimit-Remaining": {strconv.Itoa(left[path])},
				"X-Ratelimit-Reset": {strconv.FormatInt(reset.Unix(), 10)},
			}}, nil
		})}
		defer transport.Close()
		client := &http.Client{Transport: transport}
		took := func(path string) time.Duration {
			began := time.Now()
			resp, err := client.Get("https://api.github.com" + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return time.Since(began)
		}
		for range 4 {
			took("/repos/a/b")
		}
		set := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			left["/search/code"] = n
		}
		for range 4 {
			took("/search/code")
		}
		set(1)
		took("/search/code") // reports none left
		for i := range 20 {
			if d := took("/repos/a/b"); d > 20*time.Millisecond {
				t.Fatalf("call %d beside a spent resource took %v", i, d)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { took("/search/code") }) // refused within the minute, if sent
		time.Sleep(time.Second)
		for i := range 20 {
			if d := took("/repos/a/b"); d > time.Second {
				t.Fatalf("call %d of another resource took %v", i, d)
			}
		}
		set(10)
		wg.Wait()
	})
}

// Nothing of a bucket is spent while the lane holds the calls. From 6 s on the bucket is full, and
// the lane is paused for 1.5 s. Eight calls wait for it. An urgent one comes at 7.2 s. It has its
// place of the bucket when the pause ends, because the eight have none yet.
func TestLaneThatHoldsCallsSpendsNothingOfTheirBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, client := bucketRig(t)
		began := time.Now()
		for range 4 {
			v.get(t, client, "/a")
		}
		time.Sleep(6*time.Second - time.Since(began))
		if err := client.Transport.(*weir.Transport).Pause("discord.com", 1500*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { v.get(t, client, "/a") })
		}
		time.Sleep(1200 * time.Millisecond)
		v.ask(shaping.WithPriority(t.Context(), shaping.PriorityHigh), t, client, "/a")
		if urgent := time.Since(began); urgent != 7520*time.Millisecond {
			t.Errorf("the urgent call was answered at %v, want 7.52s", urgent)
		}
		wg.Wait()
		if n := v.refused["h1"]; n > 1 {
			t.Errorf("%d calls were refused, want one at most", n)
		}
	})
}
