package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// Problem returns the body of an error, as JSON, and headers that its format adds to those of any JSON
// body. The code is one of errcode, or empty.
type Problem func(status int, code, message string) (http.Header, []byte)

// adminProblem is the default of Config.Problem: the format of the admin API.
func adminProblem(_ int, code, message string) (http.Header, []byte) {
	body := struct {
		Message string  `json:"message"`
		Code    *string `json:"platform_code"`
	}{Message: message}
	if code != "" {
		body.Code = &code
	}
	text, _ := json.Marshal(body) // strings only
	return nil, text
}

// write responds with the error.
func (p Problem) write(w http.ResponseWriter, status int, code, message string) {
	header, body := p(status, code, message)
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Bounds of Abridge.
const (
	longestURL     = 200
	longestMessage = 1000
	messageStart   = 300
	messageEnd     = 500
)

// Abridge cuts the middle out of a long message about a request with a long path, which such messages quote: their start and
// end say what is wrong.
func Abridge(r *http.Request, message string) string {
	if len(r.Method)+len(r.URL.Path) <= longestURL || len(message) <= longestMessage {
		return message
	}
	return strings.ToValidUTF8(message[:messageStart], "") + "…" + strings.ToValidUTF8(message[len(message)-messageEnd:], "")
}

// response is an HTTP/1.1 response after which the connection is closed.
func response(status int, more string, header http.Header, body []byte) []byte {
	var lines bytes.Buffer
	_ = header.Write(&lines) // never fails
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n%s%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), lines.Bytes(), more, len(body), body)
}

// plainRejection follows the status line in the responses that net/http sends to requests that it
// cannot parse. Those of handlers have a date before the connection header.
var plainRejection = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// expectPrefix and expectSuffix are the start and the end of the response of net/http to a request whose Expect
// header it does not support. That response has no body. Our handlers' responses have more headers before Date.
var (
	expectPrefix = []byte("HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nDate: ")
	expectSuffix = []byte("\r\nContent-Length: 0\r\n\r\n")
)

// RequiresTLS is the message of the response to a request without TLS at a listener with TLS. That of net/http is plain text,
// and only some methods get it.
const RequiresTLS = "this port requires TLS: the address of the request must begin with https://"

// explainRejection returns the response to send instead of one of net/http to a request that it cannot
// parse; nil if p is something else. There is no other way to replace its plain text.
func explainRejection(p []byte, problem Problem) []byte {
	if bytes.HasPrefix(p, expectPrefix) && bytes.HasSuffix(p, expectSuffix) {
		header, body := problem(http.StatusExpectationFailed, "", "the only supported value of the header Expect is 100-continue")
		return response(http.StatusExpectationFailed, "", header, body)
	}
	line, found := bytes.CutPrefix(p, []byte("HTTP/1.1 "))
	if !found || len(line) < 3 || line[0] != '4' && line[0] != '5' {
		return nil
	}
	line, _, found = bytes.Cut(line, plainRejection)
	if !found || bytes.IndexByte(line, '\r') >= 0 {
		return nil
	}
	status, err := strconv.Atoi(string(line[:3]))
	if err != nil {
		return nil
	}
	_, reason, given := bytes.Cut(line, []byte(": "))
	message := "the request is not valid HTTP/1.1"
	switch {
	case given:
		message += ": " + string(reason)
	case status == http.StatusRequestHeaderFieldsTooLarge:
		message = headerTooLarge
	case status == http.StatusNotImplemented:
		message = "the transfer encoding of the request is not supported"
	case status == http.StatusBadRequest:
		message += ": its request line or a header is malformed; % in the path must be followed by two hexadecimal digits, and is itself written %25"
	}
	header, body := problem(status, "", message)
	return response(status, "", header, body)
}
