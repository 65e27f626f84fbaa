package reserve

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/weirgo/weir/internal/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(needs.Exit)) }
