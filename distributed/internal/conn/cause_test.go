package conn

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
)

// An answered error is one of the server, as go-redis has it.
type answered string

func (a answered) Error() string { return string(a) }
func (answered) RedisError()     {}

// Servers' errors when a command of the script fails: Redis 6.2.16, 7.0.15 and 7.4.1, and Valkey
// 8.0.1.
func TestCauseOfAnErrorInTheScript(t *testing.T) {
	for text, want := range map[string]string{
		"ERR Error running script (call to f_f5188): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.":           "oom",
		"@user_script: 1661: -OOM command not allowed when used memory > 'maxmemory'.":                                                                    "oom",
		"OOM command not allowed when used memory > 'maxmemory'. script: f5188, on @user_script:1.":                                                       "oom",
		"ERR Error running script (call to f_f5188): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.":             "readonly",
		"READONLY You can't write against a read only replica. script: f5188, on @user_script:1.":                                                         "readonly",
		"ERR Error running script (call to f_19339): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand": "noperm",
		"ERR The user executing the script can't run this command or subcommand script: 19339, on @user_script:1.":                                        "noperm",
		"ERR ACL failure in script: User w has no permissions to run the 'hmget' command script: 19339, on @user_script:1.":                               "noperm",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: f5188, on @user_script:1.":                                             "wrongtype",
		"ERR user_script:3: attempt to index a nil value":                                                                                                 "other",
		"@user_script: 3": "other",
	} {
		if got := CauseOf(answered(text)); got != want {
			t.Errorf("CauseOf(%q) = %q, want %q", text, got, want)
		}
	}
}

// The text of an error in a log is short, printable and without secrets, whatever the server
// repeats in it.
func TestTextOfAnErrorHasNoSecret(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{answered("ERR ACL failure in script: User canary has no permissions to run the 'hmget' command"), "ERR ACL failure in script: this user has no permissions to run the 'hmget' command"},
		{answered("NOPERM User canary has no permissions to run the 'evalsha' command"), "NOPERM this user has no permissions to run the 'evalsha' command"},
		{answered("ERR unknown command 'AUTH', with args beginning with: 'canary' 'canary'"), "ERR unknown command 'AUTH'"},
		{answered("ERR no route to redis://u:canary@host:1/0"), "ERR no route to redis://host:1/0"},
		{answered("ERR canary is wrong"), "ERR *** is wrong"},
		{answered("ERR \x1b[31mred\r\n\u202eder"), "ERR  [31mred   der"},
		{answered("ERR " + strings.Repeat("x", 1<<20)), "ERR " + strings.Repeat("x", longestText-4)},
		{fmt.Errorf("dial: %w", &net.DNSError{Err: "no such host", Name: "redis"}), "lookup redis: no such host"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, "dial tcp: connection refused"},
		{errors.New("credentials: canary"), ""},
		{nil, ""},
	} {
		if got := textOf(c.err, "canary"); got != c.want {
			t.Errorf("textOf(%.100q) = %q, want %q", fmt.Sprint(c.err), got, c.want)
		}
	}
}
