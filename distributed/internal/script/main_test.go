package script

import (
	"testing"

	"github.com/weirgo/weir/internal/needs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(needs.Exit)) }
