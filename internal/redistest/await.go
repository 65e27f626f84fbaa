package redistest

import (
	"fmt"
	"time"
)

// patience is how long a fixture may take to be ready. On an idle machine a server takes 10 ms and
// a cluster 2 s.
const patience = 30 * time.Second

// await polls a condition every few milliseconds. An error ends the wait.
func await(what string, come func() (bool, error)) error {
	limit := time.After(patience)
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for {
		if ok, err := come(); ok || err != nil {
			return err
		}
		select {
		case <-pause.C:
		case <-limit:
			return fmt.Errorf("waited %v for %s", patience, what)
		}
	}
}
