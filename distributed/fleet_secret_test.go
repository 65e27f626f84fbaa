package distributed_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
)

// A password is rotated, wrong, and right again. The store reports that authentication failed,
// never reveals the password, and recovers by itself.
func TestR17ARotatedPasswordIsNeverLogged(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	all := strings.Fields(distributed.MinimumACL)
	grant(t, server, all...)
	var told diary
	f := newFleet(t, plan{server: server, members: 3, prepare: func(r *replica) { r.store.Logger = told.logger() }, config: config{
		Redis: place{User: "weir", Password: password}, OnLoss: distributed.FailClosed,
	}})
	f.steady()
	causes := func() (all []string) {
		for _, s := range f.states() {
			all = append(all, s.Cause)
		}
		return all
	}
	f.suffer(3, 2*moment, func() {
		f.do("ACL", "SETUSER", "weir", "resetpass", ">another")
		f.do("CLIENT", "KILL", "USER", "weir")
	}, func() {
		t.Logf("causes %q", causes())
		if got := fmt.Sprint(causes()); !strings.Contains(got, "auth") {
			t.Errorf("the causes of the loss are %s, want auth", got)
		}
		grant(t, server, all...)
	})
	f.judge()
	for _, r := range f.members {
		for text := range r.refusals {
			fmt.Fprintln(&told, text)
		}
	}
	if text := told.String(); strings.Contains(text, password) || strings.Contains(text, "another") || !strings.Contains(text, "cause=") {
		t.Errorf("the password is reported:\n%s", text)
	}
	if text := driver.told.Load(); text != nil {
		t.Errorf("the Redis client logs %q", text)
	}
}
