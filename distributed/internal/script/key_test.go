package script

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Row R11: all keys of a lane lie in one slot, whatever its name.
func TestR11KeysOfALaneHaveOneHashTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespace := rapid.String().Draw(t, "namespace")
		lane := rapid.String().Draw(t, "lane")
		key := laneKey(namespace, lane)
		open, shut := strings.Index(key, "{"), strings.Index(key, "}")
		if open < 0 || shut != len(key)-1 || strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || shut <= open+1 {
			t.Fatalf("laneKey(%q, %q) = %q, want one hash tag at its end", namespace, lane, key)
		}
		if len(key) > 2*maxWord+20 {
			t.Fatalf("a key of %d bytes", len(key))
		}
		if strings.ContainsAny(Escape(lane), " \n{}") {
			t.Fatalf("word(%q) = %q", lane, Escape(lane))
		}
	})
}

func TestKeysOfDifferentLanesDiffer(t *testing.T) {
	long := strings.Repeat("x", 300)
	words := []string{"", "a", "a/b", "a%2fb", "a b", "{a}", "a}", long + "1", long + "2", "ä"}
	seen := map[string]string{}
	for _, namespace := range words {
		for _, lane := range words {
			key := laneKey(namespace, lane)
			if other, ok := seen[key]; ok {
				t.Errorf("%q and %q/%q have the key %q", other, namespace, lane, key)
			}
			seen[key] = namespace + "/" + lane
		}
	}
}
