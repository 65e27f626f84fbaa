package script

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Layout is the version of the keys' content. Stores of different layouts share nothing. From 0.1
// on a version with a new layout also counts in the previous keys while those are in use: a deploy
// must not double a load.
const Layout = "1"

// maxWord bounds the namespace and the lane in a key, in bytes.
const maxWord = 200

// KeyOf returns the key of a lane's state in a layout. The braces are the hash tag that keeps
// all keys of a lane on one slot of a Cluster.
func KeyOf(layout, namespace, lane string) string {
	return "weir:" + layout + ":{" + Escape(namespace) + "/" + Escape(lane) + "}"
}

// LayoutChannel returns the channel on which stores of all layouts publish which one they write.
// Its name is the same in every version.
func LayoutChannel(namespace string) string { return "weir:1:layout:" + Escape(namespace) }

// ChannelName returns the channel of the messages of a namespace.
func ChannelName(namespace string) string {
	return "weir:" + Layout + ":messages:" + Escape(namespace)
}

// Escape returns s as written in keys and messages. A byte that would end a hash tag or a word is
// percent-encoded, and the end of a long s is a hash of it:
//
//	Escape("billing/eu") = "billing%2feu"
func Escape(s string) string {
	const kept = maxWord - 1 - 32
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ' || c == 0x7f || c == '%' || c == '{' || c == '}' || c == '/':
			b.WriteByte('%')
			b.WriteString(hex.EncodeToString([]byte{c}))
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() <= maxWord {
		return b.String()
	}
	sum := sha256.Sum256([]byte(s))
	return b.String()[:kept] + "~" + hex.EncodeToString(sum[:16])
}
