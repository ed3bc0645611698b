package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
)

// APIError is a response with an error status.
type APIError struct {
	Method string
	URL    string
	Status int

	Code         string // error code, may be empty
	Message      string // without the code
	Source       string // ingress errors: ingress or invocation
	InvocationID string // ingress errors, may be empty
	Body         []byte // unparsed
}

// Error returns the message, preceded by the code if there is one.
func (e *APIError) Error() string {
	if e.Code != "" {
		return "[" + e.Code + "] " + e.Message
	}
	return e.Message
}

// newAPIError parses the error bodies of the admin API and of the ingress.
func newAPIError(method, url string, response *http.Response, body []byte) *APIError {
	e := &APIError{Method: method, URL: url, Status: response.StatusCode, InvocationID: response.Header.Get("x-platform-id"), Body: body}
	var decoded struct {
		Message string `json:"message"`
		Code    string `json:"platform_code"`
		Source  string `json:"source"`
	}
	// The ingress also has a numeric "code", which repeats the status.
	if json.Unmarshal(body, &decoded) == nil && decoded.Message != "" {
		e.Message, e.Code, e.Source = decoded.Message, decoded.Code, decoded.Source
	} else {
		e.Message = strings.TrimSpace(string(body))
	}
	if e.Message == "" {
		e.Message = http.StatusText(e.Status)
	}
	if e.Code != "" {
		e.Message = strings.TrimSpace(strings.ReplaceAll(e.Message, "["+e.Code+"]", ""))
	}
	return e
}

// HasStatus reports whether err is a response of the server with a status.
func HasStatus(err error, status int) bool {
	response, ok := errors.AsType[*APIError](err)
	return ok && response.Status == status
}

// IsTransient reports whether the same request may succeed soon: there was no response, or one that a
// server sends while it starts, stops, is overloaded or has no leader.
func IsTransient(err error) bool {
	if _, unreachable := errors.AsType[*UnreachableError](err); unreachable {
		return true
	}
	response, ok := errors.AsType[*APIError](err)
	return ok && slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, response.Status)
}

// IsNotReady reports whether err means that an invocation has no result yet.
func IsNotReady(err error) bool {
	response, ok := errors.AsType[*APIError](err)
	return ok && response.Status == statusNotReady && response.Source != "invocation"
}

// statusNotReady is the ingress's status for an invocation that has not completed.
const statusNotReady = 470

// UnreachableError means that there was no response, or no complete one.
type UnreachableError struct {
	Interface string // admin API or ingress
	Address   string // http://host:port/ or unix:<path>
	Method    string
	URL       string
	Sent      bool // a connection was made: the server may have the request
	Writes    bool // the request may change something
	Err       error
	Partial   []byte // body of an incomplete response
}

// Error names the interface and its address.
func (e *UnreachableError) Error() string {
	if e.Sent {
		return fmt.Sprintf("no complete response from the %s at %s: %s", e.Interface, e.Address, e.reason())
	}
	return fmt.Sprintf("cannot reach the %s at %s: %s", e.Interface, e.Address, e.reason())
}

// Unwrap returns the network error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Refused reports whether nothing listens at the address.
func (e *UnreachableError) Refused() bool {
	return errors.Is(e.Err, syscall.ECONNREFUSED) || errors.Is(e.Err, syscall.ENOENT)
}

func (e *UnreachableError) reason() string {
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err); ok && timeout.Timeout() {
		return "timed out"
	}
	if errors.Is(e.Err, syscall.ECONNREFUSED) {
		return "connection refused"
	}
	if e.Sent && (errors.Is(e.Err, io.EOF) || errors.Is(e.Err, io.ErrUnexpectedEOF) || errors.Is(e.Err, syscall.ECONNRESET)) {
		return "the connection was lost"
	}
	return e.Err.Error()
}
