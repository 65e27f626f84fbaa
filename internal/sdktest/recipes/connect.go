package recipes

import (
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// newEcho returns a client of one method, whose calls wait.
func newEcho(url string, transport http.RoundTripper) *connect.Client[wrapperspb.StringValue, wrapperspb.StringValue] {
	httpClient := &http.Client{Transport: transport} // +
	return connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](httpClient, url+"/echo.v1.Echo/Say")
}
