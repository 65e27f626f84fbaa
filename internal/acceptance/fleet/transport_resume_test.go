package fleet_test

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// deafRig returns a replica that receives no messages of the fleet.
func deafRig(t *testing.T, f *harness.Fleet, vendor *testserver.Vendor, limits ...throttle.Limit) *harness.Rig {
	store := distributed.New(f.Redis.DeafClient(t), "vendor")
	store.Logger = slog.New(slog.DiscardHandler)
	t.Cleanup(func() { _ = store.Close() })
	return harness.PipeRig(t, vendor, &weir.Transport{Store: store, Limits: limits})
}

// A long pause closes the lane in all processes, and ends in all of them when one ends it: at once,
// or, where a process receives no messages, with its next call but one.
func TestResumeOpensTheFleet(t *testing.T) {
	for resumer := range 2 {
		synctest.Test(t, func(t *testing.T) {
			vendor, limit := &testserver.Vendor{}, throttle.TokenBucket(100, time.Second, 1)
			f := harness.NewFleet(t, 2, vendor, limit)
			replicas := append(f.Replicas, deafRig(t, f, vendor, limit))
			get := func(want int, in time.Duration) {
				time.Sleep(in)
				for i, r := range replicas {
					got := r.Get(t.Context(), "a")
					if got.Status != want || want == 0 && !errors.Is(got.Err, weir.ErrPaused) {
						t.Errorf("replica %d after replica %d ended the pause: GET = %d, %v, want %d", i, resumer, got.Status, got.Err, want)
					}
				}
			}
			get(200, 0)
			key := replicas[0].Transport.Snapshot()[0].Key
			if err := replicas[0].Transport.Pause(key, time.Hour); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			_ = replicas[2].Get(t.Context(), "a") // it hears of the pause with its next calls
			get(0, time.Second)
			get(0, time.Minute)
			if err := replicas[resumer].Transport.Resume(key); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			_ = replicas[2].Get(t.Context(), "a")
			get(200, time.Second)
		})
	}
}

// The pause ends in all processes also if Redis has lost it.
func TestResumeOpensTheFleetAfterAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.NewFleet(t, 2, &testserver.Vendor{}, throttle.TokenBucket(100, time.Second, 1))
		get := func(i int) harness.Answer { return f.Replicas[i].Get(t.Context(), "a") }
		_, _ = get(0), get(1)
		key := f.Replicas[0].Transport.Snapshot()[0].Key
		if err := f.Replicas[0].Transport.Pause(key, time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		f.Redis.Forget()
		for i := range f.Replicas {
			if got := get(i); !errors.Is(got.Err, weir.ErrPaused) {
				t.Errorf("replica %d: GET in the pause = %d, %v, want ErrPaused", i, got.Status, got.Err)
			}
		}
		if err := f.Replicas[0].Transport.Resume(key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i, r := range f.Replicas {
			r.Want("GET after the pause", get(i), 200)
		}
	})
}

// The same of the processes of one host, which share files.
func TestResumeOpensTheHost(t *testing.T) {
	dir := t.TempDir()
	var rigs [2]*harness.Rig
	for i := range rigs {
		store := &hostlocal.Store{Dir: dir}
		rigs[i] = harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Store: store, Limits: harness.Every(time.Millisecond)})
		rigs[i].Want("GET", rigs[i].Get(t.Context(), "a"), 200)
	}
	key := rigs[0].Transport.Snapshot()[0].Key
	if err := rigs[0].Transport.Pause(key, time.Hour); err != nil {
		t.Fatal(err)
	}
	for i, r := range rigs {
		if got := r.Get(t.Context(), "a"); !errors.Is(got.Err, weir.ErrPaused) {
			t.Errorf("process %d: GET in the pause = %d, %v, want ErrPaused", i, got.Status, got.Err)
		}
	}
	if err := rigs[1].Transport.Resume(key); err != nil {
		t.Fatal(err)
	}
	for _, r := range rigs {
		r.Want("GET after the pause", r.Get(t.Context(), "a"), 200)
	}
}

// A reply that is on its way when the operator ends the pause does not bring it back, nor hide a
// pause that follows.
func TestResumeHoldsAgainstOlderReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.NewFleet(t, 2, &testserver.Vendor{}, throttle.TokenBucket(100, time.Second, 1))
		for _, r := range f.Replicas {
			r.Want("GET", r.Get(t.Context(), "a"), 200)
		}
		time.Sleep(time.Second)
		one := f.Replicas[0].Transport
		key := one.Snapshot()[0].Key
		do := func(err error, then time.Duration) {
			if time.Sleep(then); err != nil {
				t.Error(err)
			}
		}
		do(one.Pause(key, time.Hour), harness.RoundTrip/2)
		do(one.Resume(key), harness.RoundTrip)
		if paused := one.Snapshot()[0].Paused; paused != 0 {
			t.Errorf("a reply from before Resume pauses the lane for %v", paused)
		}
		do(one.Pause(key, 10*time.Minute), time.Second)
		for i, r := range f.Replicas {
			if got := r.Get(t.Context(), "a"); !errors.Is(got.Err, weir.ErrPaused) {
				t.Errorf("replica %d: GET in the second pause = %d, %v, want ErrPaused", i, got.Status, got.Err)
			}
		}
	})
}

// Also of a pause that the vendor asked for, from which all processes have learned, and for calls
// that wait through it.
func TestResumeEndsALearnedHoldOfTheHost(t *testing.T) {
	for name, end := range map[string]func(*weir.Transport, string) error{"Resume": (*weir.Transport).Resume, "Forget": (*weir.Transport).Forget} {
		for _, asked := range []string{"60", "600"} {
			synctest.Test(t, func(t *testing.T) {
				dir, vendor := t.TempDir(), &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(3, 3, asked)}}
				var rigs [2]*harness.Rig
				for i := range rigs {
					rigs[i] = harness.PipeRig(t, vendor, &weir.Transport{Store: &hostlocal.Store{Dir: dir}, Key: func(*http.Request) string { return "a" }})
					rigs[i].Want("GET", rigs[i].Get(t.Context(), "a"), 200)
				}
				refused := rigs[0].Start("refused")
				time.Sleep(5 * time.Second)
				began := time.Now()
				if err := end(rigs[1].Transport, "a"); err != nil {
					t.Error(err)
				}
				if asked == "60" {
					rigs[0].Want("GET in line", <-refused, 200)
				}
				time.Sleep(time.Second)
				for _, r := range rigs {
					r.Want("GET after the pause", r.Get(t.Context(), "a"), 200)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("%s of a pause of %ss: traffic is back after %v", name, asked, took)
				}
			})
		}
	}
}
