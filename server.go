package weir

import (
	"net/http"
	"sync/atomic"

	"github.com/weirgo/weir/headers"
)

// A server is what HTTP has shown of the server behind a lane. It stands beside
// the lane, for its calls: the lane itself knows nothing of HTTP. The zero value
// knows nothing yet. It is safe for concurrent use.
type server struct {
	spoken   atomic.Pointer[spoken]
	protocol atomic.Int32 // HTTP major version of its last response; zero: there was none
}

// spoken is the dialect of a host.
type spoken struct {
	host    string
	dialect *headers.Dialect
}

// dialect returns the dialect of the request's host. A lane nearly always has
// one host, so it is looked up once; and many lanes may have the same, which is
// the last that any of them has looked up.
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

// answered takes in a response.
func (s *server) answered(resp *http.Response) {
	if protocol := int32(resp.ProtoMajor); s.protocol.Load() != protocol {
		s.protocol.Store(protocol)
	}
}

// http2 reports whether the server speaks HTTP/2, or may for all that is known.
// A connection can be found dead only after it has answered, so what is not
// known is not that.
func (s *server) http2(secure bool) bool {
	protocol := s.protocol.Load()
	return protocol >= 2 || protocol == 0 && secure
}
