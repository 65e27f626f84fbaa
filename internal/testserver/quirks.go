package testserver

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Quirks returns a handler for the rarer corners of HTTP. It may be a [Vendor.Handler], behind
// limits. Paths marked with a star take over the connection, and so answer 505 over HTTP/2.
//
//	CONNECT any target        200, then a tunnel that echoes (*)
//	/switch                   101 to the protocol of Upgrade, then an echo (*)
//	/lines?status=&line=      a bodiless answer with the given header lines as
//	                          they are, in order: repeated, folded by "\r\n " (*)
//	/field?size=              a field X-Field of size bytes
//	/interim?n=               n answers 103 before the 200
//	/trailers                 a body, then the trailers X-Sum and X-Late
//	/events?n=&every=         n server-sent events, every (a duration) apart
//	/gzip                     a text, compressed if the request asks for it
//	/echo                     the request's body, read after a 100 if one is expected
//	/reject                   417 without reading the body
//	/body?size=               a body of size bytes
//	/redirect?to=&status=     a redirect; zero status: 302
func Quirks() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/switch", switchProtocols)
	mux.HandleFunc("/lines", headerLines)
	mux.HandleFunc("/field", largeField)
	mux.HandleFunc("/interim", interimAnswers)
	mux.HandleFunc("/trailers", trailers)
	mux.HandleFunc("/events", events)
	mux.HandleFunc("/gzip", compressed)
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/reject", reject)
	mux.HandleFunc("/body", sizedBody)
	mux.HandleFunc("/redirect", redirect)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			tunnel(w, http.StatusOK, "HTTP/1.1 200 Connection Established\r\n\r\n")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// switchProtocols answers 101 and echoes.
func switchProtocols(w http.ResponseWriter, r *http.Request) {
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") + "\r\n\r\n"
	tunnel(w, http.StatusSwitchingProtocols, answer)
}

// tunnel sends the answer and then everything that the client sends, until it stops.
func tunnel(w http.ResponseWriter, status int, answer string) {
	conn, rw, ok := takeOver(w, status)
	if !ok {
		return
	}
	defer conn.Close()
	io.WriteString(conn, answer)
	io.Copy(conn, rw)
}

// headerLines answers with the header lines in the query.
func headerLines(w http.ResponseWriter, r *http.Request) {
	status := number(r, "status", http.StatusOK)
	lines := []string{fmt.Sprintf("HTTP/1.1 %d %s", status, http.StatusText(status)), "Content-Length: 0", "Connection: close"}
	lines = append(lines, r.URL.Query()["line"]...)
	conn, _, ok := takeOver(w, status)
	if !ok {
		return
	}
	defer conn.Close()
	io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n")
}

// takeOver hijacks the connection. It notes the status in the vendor's record,
// which would miss it otherwise.
func takeOver(w http.ResponseWriter, status int) (net.Conn, *bufio.ReadWriter, bool) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusHTTPVersionNotSupported)
		return nil, nil, false
	}
	if rec, ok := w.(*recorder); ok {
		rec.note(status)
	}
	return conn, rw, true
}

func largeField(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Field", string(filler(number(r, "size", 1<<10))))
}

func interimAnswers(w http.ResponseWriter, r *http.Request) {
	for range number(r, "n", 1) {
		w.WriteHeader(http.StatusEarlyHints)
	}
	io.WriteString(w, "ok\n")
}

func trailers(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Trailer", "X-Sum, X-Late")
	io.WriteString(w, "body\n")
	w.Header().Set("X-Sum", "5")
	w.Header().Set("X-Late", "yes")
}

func events(w http.ResponseWriter, r *http.Request) {
	every, _ := time.ParseDuration(r.URL.Query().Get("every"))
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range number(r, "n", 3) {
		if i > 0 {
			pause(r.Context(), every)
		}
		fmt.Fprintf(w, "id: %d\ndata: event %d\n\n", i, i)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}

func compressed(w http.ResponseWriter, r *http.Request) {
	text := strings.Repeat("compressed text\n", 64)
	w.Header().Set("Vary", "Accept-Encoding")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zip := gzip.NewWriter(w)
	defer zip.Close()
	io.WriteString(zip, text)
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.Write(body)
}

func reject(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusExpectationFailed) }

func sizedBody(w http.ResponseWriter, r *http.Request) {
	size := number(r, "size", 1<<10)
	w.Header().Set("Content-Length", strconv.Itoa(size))
	if r.Method != http.MethodHead {
		w.Write(filler(size))
	}
}

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, r.URL.Query().Get("to"), number(r, "status", http.StatusFound))
}

// number returns a query parameter, or zero if it is not a number.
func number(r *http.Request, name string, zero int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return zero
}
