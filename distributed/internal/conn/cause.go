package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// CauseOf returns why a call failed, in one word for telemetry; "" if it succeeded. The first word
// of a server's error decides: inside a script the rest differs.
func CauseOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
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
	if strings.Contains(text, stranger) {
		return "auth"
	}
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

// denials are the texts by which servers report a missing grant within a script: Redis up to 7.0,
// and Redis from 7.2 and Valkey.
var denials = [...]string{"The user executing the script can't", "ACL failure in script"}

// stranger is a word of the error for a long command on a connection that is not logged
// in: "ERR Protocol error: unauthenticated multibulk length".
const stranger = "unauthenticated"

// inScript precedes the place of an error in a script in Redis up to 6.2: "@user_script: 12: -OOM
// command not allowed".
const inScript = "@user_script: "

var causes = map[string]string{
	"NOSCRIPT": "noscript", "LOADING": "loading", "READONLY": "readonly", "OOM": "oom", "BUSY": "busy",
	"NOPERM": "noperm", "NOAUTH": "auth", "WRONGPASS": "auth", "DENIED": "auth", "WRONGTYPE": "wrongtype",
	"CLUSTERDOWN": "cluster", "CROSSSLOT": "cluster", "MOVED": "cluster", "ASK": "cluster", "TRYAGAIN": "cluster",
	"MASTERDOWN": "masterdown", "NOREPLICAS": "noreplicas", "MISCONF": "misconf",
}

// Lasting reports whether only an operator can end the cause, so that frequent retries are useless.
func Lasting(cause string) bool { return cause == "noperm" || cause == "auth" || cause == "channel" }

// Explain says in plain words what a cause means.
func Explain(cause string) string {
	return cmp.Or(explanations[cause], "Redis does not answer")
}

// explanations explain every cause but those that mean that Redis does not answer.
var explanations = map[string]string{
	"auth":       "Redis does not accept the user or password of the store's client",
	"noperm":     "the store's user of Redis lacks a grant: distributed.MinimumACL lists what it needs",
	"reply":      "the reply is not one of the store's script",
	"refused":    "nothing listens at the address of Redis",
	"reset":      "the connection to Redis was closed",
	"network":    "Redis cannot be reached",
	"loading":    "Redis loads its data",
	"readonly":   "this Redis is a replica that accepts no writes",
	"oom":        "Redis has no memory left",
	"busy":       "Redis is busy with another script",
	"cluster":    "this node of the Cluster does not serve the lane's keys",
	"masterdown": "this replica of Redis has lost its master",
	"noreplicas": "Redis has too few replicas to accept writes",
	"misconf":    "Redis cannot save its data, and accepts no writes",
	"wrongtype":  "another program writes to the store's keys",
	"other":      "Redis refused the call",
}

// longestText bounds the text of an error in a log, in bytes.
const longestText = 240

var (
	userInText = regexp.MustCompile(`\b[Uu]ser \S+ has\b`)
	urlUser    = regexp.MustCompile(`://[^/@\s]*@`)
)

// Text returns the text of an error of Redis or of the network, as a log may have it:
// printable, bounded, and without the password of the client, the names of users, and the
// arguments of commands. It returns nothing for other errors, because a function of the
// client's options may have made them.
func (c *Client) Text(err error) string { return textOf(err, serversOf(c.Redis).password) }

func textOf(err error, password string) string {
	var (
		answer redis.Error
		socket net.Error
		secure *tls.CertificateVerificationError
		text   string
	)
	switch {
	case errors.As(err, &answer):
		text = answer.Error()
	case errors.As(err, &socket):
		text = socket.Error()
	case errors.As(err, &secure):
		text = secure.Error()
	}
	text, _, _ = strings.Cut(text, ", with args beginning with")
	text = urlUser.ReplaceAllString(userInText.ReplaceAllString(text, "this user has"), "://")
	if password != "" {
		text = strings.ReplaceAll(text, password, "***")
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
	return text[:min(len(text), longestText)]
}

// Executed reports whether the script may have run although the call failed.
func Executed(cause string) bool {
	return cause == "timeout" || cause == "reset" || cause == "reply" || cause == "network" || cause == "panic" || cause == "other"
}
