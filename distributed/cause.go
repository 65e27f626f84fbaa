package distributed

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// causeOf returns why a call failed, in one word of ours for telemetry. Errors
// of the server are told by their first word: inside a script the rest differs.
func causeOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, errReply):
		return "reply"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	}
	var of net.Error
	if errors.As(err, &of) {
		if of.Timeout() {
			return "timeout"
		}
		return "network"
	}
	var answer redis.Error
	if !errors.As(err, &answer) {
		return "other"
	}
	text := answer.Error()
	for _, denial := range denials {
		if strings.Contains(text, denial) {
			return "noperm"
		}
	}
	if _, inner, ok := strings.Cut(text, inScript); ok {
		_, text, _ = strings.Cut(inner, ": -")
	}
	first, _, _ := strings.Cut(text, " ")
	if cause, ok := causes[first]; ok {
		return cause
	}
	return "other"
}

// denials are how servers say within a script that a grant is missing: Redis up to 7.0,
// and Redis from 7.2 on and Valkey.
var denials = [...]string{"The user executing the script can't", "ACL failure in script"}

// inScript stands before the place of an error in a script where Redis up to 6.2 says
// it: "@user_script: 12: -OOM command not allowed".
const inScript = "@user_script: "

var causes = map[string]string{
	"NOSCRIPT": "noscript", "LOADING": "loading", "READONLY": "readonly", "OOM": "oom", "BUSY": "busy",
	"NOPERM": "noperm", "NOAUTH": "auth", "WRONGPASS": "auth", "WRONGTYPE": "wrongtype",
	"CLUSTERDOWN": "cluster", "CROSSSLOT": "cluster", "MOVED": "cluster", "ASK": "cluster", "TRYAGAIN": "cluster",
	"MASTERDOWN": "masterdown", "NOREPLICAS": "noreplicas", "MISCONF": "misconf",
}

// lasting reports whether only an operator can end the cause, so that asking
// often is of no use.
func lasting(cause string) bool { return cause == "noperm" || cause == "auth" }

// executed reports whether the script may have run although the call failed.
func executed(cause string) bool {
	return cause == "timeout" || cause == "reset" || cause == "reply" || cause == "network" || cause == "panic" || cause == "other"
}
