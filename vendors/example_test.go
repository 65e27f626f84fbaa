package vendors_test

import (
	"fmt"
	"net/http"

	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/vendors"
)

// A client for GitHub, in one line. Its Base is a vendor in this process; real programs
// leave it at its zero.
func Example() {
	server, err := testserver.Pipe(new(testserver.Vendor))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	transport := vendors.GitHub().Transport()
	transport.Base = server.Transport()
	defer transport.Close()

	client := &http.Client{Transport: transport}
	resp, err := client.Get("http://api.github.com/zen")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}

// A preset's numbers, with their sources.
func ExampleGitHub() {
	for _, n := range vendors.GitHub().Numbers {
		fmt.Printf("%v (%s, read on %s): %s\n", n, n.Method, n.Read, n.Counts)
	}
	// Output:
	// 5000/h (documented, read on 2026-11-25): requests of a user
	// 900/m of points (documented, read on 2026-11-25): points of requests to one endpoint: 5 for a write, else 1
	// 100 at a time (documented, read on 2026-11-25): requests in flight
	// 80/m of content (documented, read on 2026-11-25): POST, PATCH and PUT, which may generate content
	// 500/h of content (documented, read on 2026-11-25): POST, PATCH and PUT, which may generate content
}

// A better plan, and half of it for this process.
func ExamplePreset() {
	p := vendors.HubSpot()
	p.Numbers[0].Most = 190 // a Professional account
	p.Share = 0.5
	fmt.Println(p.Transport().Limits)
	// Output: [log 95/11s 112498/24h0m1s burst 12500]
}
