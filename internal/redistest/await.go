package redistest

import (
	"fmt"
	"time"
)

// patience is how long a fixture may take to be ready. A server takes 10 ms
// and a cluster 2 s where nothing else runs.
const patience = 30 * time.Second

// await asks every few milliseconds whether what is waited for has come; an
// error ends the waiting.
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
