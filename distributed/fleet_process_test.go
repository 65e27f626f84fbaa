package distributed_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A process runs replicas, and can be killed, stopped and frozen.
type process struct {
	t      *testing.T
	config config
	index  int // of its first replica
	depart func(departure)

	mu   sync.Mutex
	run  *run
	skew string // of the clock of Redis, as last stepped
}

// A run is one life of a process.
type run struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	states chan []throttle.StoreState
	errors bytes.Buffer
	done   chan struct{} // closed at its end
}

// launch starts a process, which ends with the test.
func launch(t *testing.T, c config, index int, depart func(departure)) *process {
	t.Helper()
	p := &process{t: t, config: c, index: index, depart: depart, skew: "0"}
	p.start()
	t.Cleanup(p.Kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	r := &run{cmd: exec.Command(os.Args[0]), states: make(chan []throttle.StoreState, 1), done: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), replicaEnv+"=1")
	r.cmd.Stderr = &r.errors
	dieWithParent(r.cmd)
	in, err := r.cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	r.in = in
	started := make(chan error, 1)
	go p.follow(r, out, started)
	if err := <-started; err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	_ = json.NewEncoder(in).Encode(p.config) // if it is dead already, follow reports it
	if p.config.Skewed {
		p.step(p.skew)
	}
}

// follow holds the thread that starts the process until it has ended. For the kernel that thread is
// the parent, and the process dies with it.
func (p *process) follow(r *run, out io.Reader, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(r.done)
	err := r.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	words := json.NewDecoder(out)
	for err = p.hear(r, words); err == nil; {
		err = p.hear(r, words)
	}
	if err != io.EOF {
		p.t.Errorf("replica %d: %v", p.index, err)
	}
	err = r.cmd.Wait()
	if text := r.errors.String(); text != "" || err != nil && !strings.Contains(err.Error(), "killed") {
		p.t.Errorf("replica %d: %v\n%s", p.index, err, text)
	}
}

// hear decodes one word and handles it.
func (p *process) hear(r *run, words *json.Decoder) error {
	var w word
	if err := words.Decode(&w); err != nil {
		return err
	}
	if d := w.Departure; d != nil {
		d.Replica += p.index
		p.depart(*d)
		return nil
	}
	select {
	case r.states <- w.States:
	default: // the asker has given up
	}
	return nil
}

func (p *process) life() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// states asks for the states of the replicas. A killed or stopped process has no states.
func (p *process) states() []throttle.StoreState {
	r := p.life()
	_, _ = io.WriteString(r.in, "\n")
	select {
	case s := <-r.states:
		return s
	case <-r.done:
		return nil
	case <-time.After(patience):
		p.t.Errorf("replica %d does not say how it fares", p.index)
		return nil
	}
}

// step sets the clock of Redis off by to microseconds, also for later restarts of the process.
func (p *process) step(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skew = to
	_, _ = io.WriteString(p.run.in, to+"\n")
}

// Kill ends the process as SIGKILL does, and returns when it has exited.
func (p *process) Kill() {
	r := p.life()
	_ = r.cmd.Process.Kill() // it may have exited already
	<-r.done
}

// Restart starts the process again after it was killed or ended.
func (p *process) Restart() {
	p.t.Helper()
	p.Kill()
	p.start()
}

// Leave makes the process exit in order, and returns when it has.
func (p *process) Leave() {
	p.t.Helper()
	r := p.life()
	r.in.Close()
	select {
	case <-r.done:
	case <-time.After(patience):
		p.t.Errorf("replica %d does not end", p.index)
		p.Kill()
	}
}

// Stop halts the process as SIGSTOP does, until Continue.
func (p *process) Stop() { halt(p.t, p.life().cmd.Process) }

// Continue resumes a stopped process.
func (p *process) Continue() { resume(p.t, p.life().cmd.Process) }

// Freeze stops the process for the frozen part of each period, until thaw is called.
func (p *process) Freeze(frozen, period time.Duration) (thaw func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer p.Continue()
		for next := time.NewTicker(period); ; {
			p.Stop()
			time.Sleep(frozen)
			p.Continue()
			select {
			case <-next.C:
			case <-quit:
				next.Stop()
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
