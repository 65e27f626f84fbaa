package testserver_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"testing"

	"github.com/weirgo/weir/internal/testserver"
)

func TestFramesTurnStreamsAwayFirst(t *testing.T) {
	tests := []struct {
		name  string
		how   testserver.Refusal
		conns int
	}{
		{"go away", testserver.GoAway, 2},
		{"refused stream", testserver.RefusedStream, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			frames := &testserver.Frames{Refusals: 1, How: tt.how}
			server := testserver.RunFrames(t, frames)
			client := server.Client()
			mustGet(t, client, server.URL, 200)
			if got := frames.Streams(); got != 2 {
				t.Errorf("Streams() = %d, want 2", got)
			}
			if got := server.Conns(); got != tt.conns {
				t.Errorf("Conns() = %d, want %d", got, tt.conns)
			}
			mustGet(t, client, server.URL, 200)
			if got := frames.Streams(); got != 3 {
				t.Errorf("Streams() after a second call = %d, want 3", got)
			}
		})
	}
}

func TestFramesCalmIsNotAskedAgain(t *testing.T) {
	for name, how := range map[string]testserver.Refusal{
		"go away": testserver.EnhanceYourCalm,
		"stream":  testserver.CalmStream,
	} {
		t.Run(name, func(t *testing.T) {
			frames := &testserver.Frames{Refusals: -1, How: how}
			server := testserver.RunFrames(t, frames)
			if _, err := get(server.Client(), server.URL); err == nil {
				t.Error("GET = nil error")
			}
			if got := frames.Streams(); got != 1 {
				t.Errorf("Streams() = %d, want 1", got)
			}
		})
	}
}

// A guard must stop net/http, which otherwise resends again and again behind one call.
func TestFramesGoAwayLoopsInNetHTTP(t *testing.T) {
	frames := &testserver.Frames{Refusals: -1}
	server := testserver.RunFrames(t, frames)
	ctx, cancel := context.WithCancel(t.Context())
	conns := 0
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if conns++; conns == 4 {
			cancel()
		}
	}}
	req, _ := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, server.URL, nil)
	if resp, err := server.Client().Do(req); err == nil {
		resp.Body.Close()
		t.Error("GET = nil error")
	}
	if got := frames.Streams(); got < 3 {
		t.Errorf("Streams() = %d, want at least 3", got)
	}
}
