package conn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Calls share contexts one after another: each ends at its own deadline. The context of an
// unanswered call is not reused.
func TestACallsContextEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(Node)
		for range 3 {
			now := time.Now()
			d := n.Deadline(now.Add(time.Second), time.Second)
			if at, ok := d.Deadline(); at != now.Add(time.Second) || !ok {
				t.Errorf("Deadline() = %v, %t, want a second from %v", at, ok, now)
			}
			time.Sleep(time.Second - 1)
			if d.Err() != nil {
				t.Errorf("Err() = %v before the deadline", d.Err())
			}
			n.Done(d, nil)
			time.Sleep(time.Second)
			if d.Err() != nil {
				t.Errorf("Err() = %v after the call was answered", d.Err())
			}
		}
		for _, unanswered := range []struct {
			lasts time.Duration
			err   error
		}{{time.Second, nil}, {0, errors.New("reset")}} {
			d := n.Deadline(time.Now().Add(time.Second), time.Second)
			time.Sleep(unanswered.lasts)
			synctest.Wait()
			select {
			case <-d.Done():
				if d.Err() != context.DeadlineExceeded || unanswered.lasts == 0 {
					t.Errorf("ended by %v after %v", d.Err(), unanswered.lasts)
				}
			default:
				if unanswered.lasts > 0 {
					t.Errorf("has not ended after %v", unanswered.lasts)
				}
			}
			n.Done(d, unanswered.err)
			if again := n.Deadline(time.Now().Add(time.Second), time.Second); again == d {
				t.Errorf("the context of a call of %v, with error %v, is used again", unanswered.lasts, unanswered.err)
			} else {
				n.Done(again, nil)
				n.deadlines.Get() // not kept for the next
			}
		}
	})
}
