package redistest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// An Error is an error reply, such as "READONLY You can't write against a
// read only replica."
type Error string

func (e Error) Error() string { return string(e) }

// command writes a command as the array of strings of the Redis serialization
// protocol, version 2.
func command(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b
}

// readReply reads one reply of the protocol.
func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, fmt.Errorf("redistest: empty line for a reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return Error(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("redistest: reply %q: %w", line, err)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		return readString(r, int(n))
	case kind == '*':
		return readSlice(r, int(n))
	}
	return nil, fmt.Errorf("redistest: reply %q of unknown kind", line)
}

func readString(r *bufio.Reader, n int) (any, error) {
	b := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return string(b[:n]), nil
}

func readSlice(r *bufio.Reader, n int) (any, error) {
	replies := make([]any, n)
	for i := range replies {
		reply, err := readReply(r)
		if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}
