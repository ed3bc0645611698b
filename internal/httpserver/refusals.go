package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// problemBody is the default of Config.Problem: the format of the admin API.
func problemBody(_ int, code, message string) []byte {
	body := struct {
		Message string  `json:"message"`
		Code    *string `json:"platform_code"`
	}{Message: message}
	if code != "" {
		body.Code = &code
	}
	text, _ := json.Marshal(body) // strings only
	return text
}

// response is an HTTP/1.1 response after which the connection is closed.
func response(status int, more string, body []byte) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), more, len(body), body)
}

// plainRefusal follows the status line in the responses that net/http sends to requests that it
// cannot parse. Those of handlers have a date before the connection header.
var plainRefusal = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

// explainRefusal returns the response to send instead of one of net/http to a request that it cannot
// parse; nil if p is something else. There is no other way to replace its plain text.
func explainRefusal(p []byte, problem func(status int, code, message string) []byte) []byte {
	line, found := bytes.CutPrefix(p, []byte("HTTP/1.1 "))
	if !found || len(line) < 3 || line[0] != '4' && line[0] != '5' {
		return nil
	}
	line, _, found = bytes.Cut(line, plainRefusal)
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
		message += "; in its path, % must be followed by two hexadecimal digits, and is itself written %25"
	}
	return response(status, "", problem(status, "", message))
}
