package httpserver

import (
	"fmt"
	"net/http"
)

const (
	// maxHeader is the largest size of the request line and the headers of a request.
	maxHeader = 64 << 10
	// parsedHeader is what net/http reads of them. It must be more than maxHeader: if they exceed it, net/http
	// closes an HTTP/2 connection, with the other requests of the client. What it parses is
	// in memory, so it is not much more.
	parsedHeader = 2 * maxHeader
	// headerSlack is what net/http has always accepted beyond its limit.
	headerSlack = 4 << 10
)

// limitHeaders rejects requests whose headers are too large.
func limitHeaders(h http.Handler, problem Problem) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if headerSize(r) <= maxHeader+headerSlack {
			h.ServeHTTP(w, r)
			return
		}
		problem.write(w, http.StatusRequestHeaderFieldsTooLarge, "", headerTooLarge)
	})
}

var headerTooLarge = fmt.Sprintf("the request line and the headers have more than %d bytes", maxHeader)

// headerSize returns the size of the request line and the headers, as HTTP/1.1 writes them.
func headerSize(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return n
}
