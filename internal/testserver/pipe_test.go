package testserver_test

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/weirgo/weir/internal/testserver"
)

func TestPipeFailsAsTCPDoes(t *testing.T) {
	tests := []struct {
		name     string
		do       testserver.Effect
		wantRead error
	}{
		{"closed", testserver.CloseAfter, nil},
		{"reset", testserver.ResetEarly, syscall.ECONNRESET},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := &testserver.Vendor{Faults: []testserver.Fault{{Do: tt.do}}}
			server := testserver.Run(t, testserver.Pipe, v)
			conn, err := server.Transport().DialContext(t.Context(), "tcp", "any.example:80")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: any.example\r\n\r\n")
			if _, err := io.ReadAll(conn); !errors.Is(err, tt.wantRead) {
				t.Errorf("read until the end = %v, want %v", err, tt.wantRead)
			}
			if n, err := io.WriteString(conn, "more"); n != 4 || err != nil {
				t.Errorf("first write = %d, %v, want it swallowed", n, err)
			}
			if _, err := io.WriteString(conn, "more"); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("second write = %v, want EPIPE", err)
			}
		})
	}
}

func TestClosedPipeRefusesConnections(t *testing.T) {
	server, err := testserver.Pipe(&testserver.Vendor{})
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	server.Close()
	if _, err := get(client, server.URL); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("GET = %v, want a refused connection", err)
	}
}
