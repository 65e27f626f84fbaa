package distributed

import (
	"strconv"
	"strings"

	"github.com/weirgo/weir/internal/redistest"
)

// usecPerCall returns what a call of the script cost the server.
func usecPerCall(server *redistest.Server) float64 {
	stats, _ := server.Do("INFO", "commandstats")
	_, rest, _ := strings.Cut(stats.(string), "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec_per_call=")
	number, _, _ := strings.Cut(rest, ",")
	usec, _ := strconv.ParseFloat(number, 64)
	return usec
}
