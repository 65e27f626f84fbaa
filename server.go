package weir

import (
	"net/http"
	"sync/atomic"

	"github.com/weirgo/weir/headers"
)

// A server is what HTTP has shown of the server behind a lane. It is kept
// beside the lane for its calls, because the lane itself knows nothing of HTTP.
// The zero value knows nothing yet. It is safe for concurrent use.
type server struct {
	spoken   atomic.Pointer[spoken]
	protocol atomic.Int32 // HTTP major version of its last response; zero: there was none
}

// A spoken is a host with its dialect.
type spoken struct {
	host    string
	dialect *headers.Dialect
}

// dialect returns the dialect of the request's host. A lane nearly always has
// one host, so the lane looks it up once. Many lanes may have the same host, so
// the last look-up of any lane is tried first.
func (s *server) dialect(req *http.Request, last *atomic.Pointer[spoken]) *headers.Dialect {
	host := req.URL.Host
	if own := s.spoken.Load(); own != nil && own.host == host {
		return own.dialect
	}
	known := last.Load()
	if known == nil || known.host != host {
		known = &spoken{host, headers.DialectOf(req)}
		last.Store(known)
	}
	s.spoken.Store(known)
	return known.dialect
}

// answered notes the protocol of a response.
func (s *server) answered(resp *http.Response) {
	if protocol := int32(resp.ProtoMajor); s.protocol.Load() != protocol {
		s.protocol.Store(protocol)
	}
}

// http2 reports whether the server speaks HTTP/2, or may speak it as far as is
// known. A connection can only be found dead after it has answered, so an
// unknown protocol means that no connection was.
func (s *server) http2(secure bool) bool {
	protocol := s.protocol.Load()
	return protocol >= 2 || protocol == 0 && secure
}
