package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
)

// APIError is an answer with an error status.
type APIError struct {
	Method string
	URL    string
	Status int

	Code         string // of the catalogue, may be empty
	Message      string // without the code
	Source       string // ingress errors: ingress or invocation
	InvocationID string // ingress errors, may be empty
	Body         []byte // as it came
}

// Error returns the message, with the code in front when there is one.
func (e *APIError) Error() string {
	if e.Code != "" {
		return "[" + e.Code + "] " + e.Message
	}
	return e.Message
}

// newAPIError reads both error bodies: the admin API's and the ingress's.
func newAPIError(method, url string, answer *http.Response, body []byte) *APIError {
	e := &APIError{Method: method, URL: url, Status: answer.StatusCode, InvocationID: answer.Header.Get("x-platform-id"), Body: body}
	var decoded struct {
		Message string `json:"message"`
		Code    string `json:"platform_code"`
		Source  string `json:"source"`
	}
	// The ingress has a numeric "code" beside; it repeats the status.
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

// HasStatus reports whether err is an answer of the server with a status.
func HasStatus(err error, status int) bool {
	answer, ok := errors.AsType[*APIError](err)
	return ok && answer.Status == status
}

// IsNotReady reports whether err says that an invocation has no result yet.
func IsNotReady(err error) bool {
	answer, ok := errors.AsType[*APIError](err)
	return ok && answer.Status == statusNotReady && answer.Source != "invocation"
}

// statusNotReady is the ingress's status for an invocation that has not completed.
const statusNotReady = 470

// UnreachableError says that there was no answer.
type UnreachableError struct {
	Interface string // admin API or ingress
	Address   string // http://host:port/ or unix:<path>
	Method    string
	URL       string
	Sent      bool // a connection was made: the server may have the request
	Writes    bool // the request may change something
	Err       error
	Partial   []byte // of an answer that broke off
}

// Error names the interface and its address.
func (e *UnreachableError) Error() string {
	if e.Sent {
		return fmt.Sprintf("no complete answer from the %s at %s: %s", e.Interface, e.Address, e.reason())
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
