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

// A word is one message of a process: a departure, or the states of its replicas.
type word struct {
	Departure *departure            `json:"departure,omitempty"`
	States    []throttle.StoreState `json:"states,omitempty"`
}

// serve runs replicas in a process of its own and returns the exit status. The first line of in is
// a config. An empty line asks for the states, a number steps the clock of Redis by microseconds,
// and the end of in ends the process.
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

// A voice writes words one at a time. Each is written at once and whole, unless the process is
// killed.
type voice struct {
	mu sync.Mutex
	to *json.Encoder
}

func (v *voice) say(w word) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.to.Encode(w) // the parent has exited, and this process ends soon
}
