package sdktest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
)

// An echo is a connect server that refuses each call seven times.
type echo struct {
	http.Handler
	mu   sync.Mutex
	seen map[string]int
}

func newEcho() *echo {
	return &echo{seen: make(map[string]int), Handler: connect.NewUnaryHandler("/echo", func(_ context.Context, req *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(req.Msg), nil
	})}
}

func (e *echo) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	e.mu.Lock()
	id := req.Header.Get("Id")
	e.seen[id]++
	refuses := e.seen[id] <= 7
	e.mu.Unlock()
	if !refuses {
		e.Handler.ServeHTTP(w, req)
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	w.Header().Set("Retry-After-Ms", "1")
	http.Error(w, "too many", http.StatusTooManyRequests)
}

// The GetBody of connect-go rewinds one value and returns it.
func TestConnectMeetsSevenRefusals(t *testing.T) {
	for name, open := range map[string]func(http.Handler) (*testserver.Server, error){"HTTP/1.1": testserver.Listen, "HTTP/2.0": testserver.ListenTLS} {
		t.Run(name, func(t *testing.T) {
			server := testserver.Run(t, open, newEcho())
			transport := &weir.Transport{Base: server.Transport(), Learn: weir.LearnOff}
			defer transport.Close()
			client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](&http.Client{Transport: transport}, server.URL+"/echo")
			failed := 0
			for i := range 60 {
				text := strings.Repeat(strconv.Itoa(i), 1+i*i)
				req := connect.NewRequest(wrapperspb.String(text))
				req.Header().Set("Id", strconv.Itoa(i))
				if resp, err := client.CallUnary(t.Context(), req); err != nil || resp.Msg.GetValue() != text {
					failed++
					t.Logf("call %d: %v", i, err)
				}
			}
			if failed > 0 {
				t.Errorf("%d of 60 calls failed, want none", failed)
			}
		})
	}
}
