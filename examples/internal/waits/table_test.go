package waits

import (
	"bytes"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	inOrder := &Line{Name: "in order", Bulk: "campaign"}
	inOrder.kinds[Bulk] = []Message{{0, time.Second, true}, {0, 3 * time.Second, true}}
	inOrder.kinds[Password] = []Message{{time.Second, 2 * time.Second, false}}
	const want = `
      line   messages  came  sent  median wait  longest
  in order   campaign     2     2       3.00 s   3.00 s
  in order  passwords     1     0       2.00 s   2.00 s
     first   campaign     0     0            -        -
     first  passwords     0     0            -        -
waits: until sent, or until the end for those that were still in line
`
	var got bytes.Buffer
	WriteTable(&got, inOrder, &Line{Name: "first", Bulk: "campaign"})
	if got.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", &got, want)
	}
}
