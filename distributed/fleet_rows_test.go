package distributed_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// rows are the faults of Redis. Each needs a fleet test whose name begins with the row's.
var rows = map[string]string{
	"R1": "refused", "R2": "black hole at SYN", "R3": "black hole after accept", "R4": "slow",
	"R5": "reset or FIN mid-reply", "R6": "NOSCRIPT", "R7": "LOADING", "R8": "READONLY",
	"R9": "failover with lost writes", "R10": "MOVED, ASK, TRYAGAIN", "R11": "CLUSTERDOWN, CROSSSLOT",
	"R12": "BUSY", "R13": "OOM", "R15": "NOREPLICAS", "R16": "NOPERM", "R17": "rotated password", "R18": "clock stepped", "R19": "garbage in the key", "R20": "FLUSHALL",
	"R21": "restart without data", "R22": "SIGSTOP then SIGCONT", "R23": "maxclients, pool exhausted",
	"R24": "flapping", "R25": "partition of some replicas",
}

func TestEachRowHasATest(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	tested := make(map[string]bool)
	test := regexp.MustCompile(`(?m)^func Test(R\d+)\D`)
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range test.FindAllSubmatch(text, -1) {
			tested[string(found[1])] = true
		}
	}
	for row, fault := range rows {
		if !tested[row] {
			t.Errorf("no test is named for %s, %s", row, fault)
		}
	}
}
