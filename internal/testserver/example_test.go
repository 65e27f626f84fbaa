package testserver_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

func Example() {
	vendor := &testserver.Vendor{
		Limits: []testserver.Limit{testserver.FixedWindow(2, 24*time.Hour)},
		Styles: []testserver.Style{testserver.XRateLimitDelta},
		Faults: []testserver.Fault{{First: 2, Last: 2, Status: http.StatusBadGateway}},
	}
	server, err := testserver.Listen(vendor)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	client := server.Client()
	for range 4 {
		resp, err := client.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode, resp.Header["X-Ratelimit-Remaining"])
	}
	fmt.Println(vendor.Arrivals().Statuses())
	// Output:
	// 200 [1]
	// 502 []
	// 200 [0]
	// 429 [0]
	// map[200:2 429:1 502:1]
}
