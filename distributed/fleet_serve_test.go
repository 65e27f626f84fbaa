package distributed_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/weirgo/weir/throttle"
)

// A word is what a process tells: a departure, or how its replicas fare.
type word struct {
	Departure *departure            `json:"departure,omitempty"`
	States    []throttle.StoreState `json:"states,omitempty"`
}

// serve is a replica in a process of its own: a config on the first line of
// in, then an empty line for each time that it is asked for its states, or by how many
// microseconds the clock of Redis is stepped, and the end when in ends. It returns the
// exit status.
func serve(in io.Reader, out io.Writer) int {
	lines := bufio.NewScanner(in)
	lines.Scan()
	var c config
	if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	v := &voice{to: json.NewEncoder(out)}
	var all []*replica
	for i := range max(c.Together, 1) {
		r := open(c, i, c.Redis.client(), func(d departure) { v.say(word{Departure: &d}) })
		defer r.close()
		if err := r.start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		all = append(all, r)
	}
	for lines.Scan() {
		if step := lines.Text(); step != "" {
			for _, r := range all {
				r.step(step)
			}
			continue
		}
		var w word
		for _, r := range all {
			w.States = append(w.States, r.state())
		}
		v.say(w)
	}
	return 0
}

// A voice says words one after the other. Each goes out at once and whole, be
// it that the process is killed.
type voice struct {
	mu sync.Mutex
	to *json.Encoder
}

func (v *voice) say(w word) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.to.Encode(w) // who listens is gone: so is this process, soon
}
