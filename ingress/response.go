package ingress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/journal"
)

// Headers are assigned under their canonical names, which saves looking them up.
const (
	headerID           = "X-Platform-Id"
	headerIDAlias      = "X-Restate-Id"
	headerSource       = "X-Platform-Error-Source"
	headerSourceAlias  = "X-Restate-Error-Source"
	headerExpires      = "Idempotency-Expires"
	autoContentLength  = 1024 // up to this size the standard library sets the length itself
	lowestFinalStatus  = 200
	highestFinalStatus = 999
)

// conflict is how the call of a workflow that already ran fails.
var conflict = &journal.Failure{Code: http.StatusConflict, Message: routing.ErrConflict.Error()}

// setID sets the header with the ID of the invocation.
func setID(h http.Header, id ids.Invocation) {
	text := []string{id.String()}
	h[headerID], h[headerIDAlias] = text, text
}

// setSource sets the header that distinguishes errors of the server from those of invocations.
func setSource(h http.Header, source string) {
	text := []string{source}
	h[headerSource], h[headerSourceAlias] = text, text
}

// writeResponse responds with the result of an invocation.
func writeResponse(w http.ResponseWriter, response *routing.Response, rules *metadata.OutputRules) error {
	h := w.Header()
	if !response.ExpiresAt.IsZero() {
		h[headerExpires] = []string{response.ExpiresAt.UTC().Format(time.RFC3339)}
	}
	if response.Result.Failure != nil {
		return writeFailure(w, response.ID, response.Result.Failure)
	}
	value := response.Result.Value
	setID(h, response.ID)
	h["Content-Type"] = nil // keeps the standard library from guessing one
	if contentType := rules.ResponseContentType(len(value)); contentType != "" {
		h["Content-Type"] = []string{contentType}
	}
	if len(value) > autoContentLength {
		h["Content-Length"] = []string{strconv.Itoa(len(value))}
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(value) // fails only if the client has closed the connection
	return nil
}

// writeFailure responds with the failure that an invocation ended with. Its code is the status
// where HTTP allows that.
func writeFailure(w http.ResponseWriter, id ids.Invocation, f *journal.Failure) error {
	body := errorBody{Code: int(f.Code), Message: f.Message, Source: fromInvocation}
	if len(f.Metadata) > 0 {
		body.Metadata = make(map[string]string, len(f.Metadata))
		for _, m := range f.Metadata {
			body.Metadata[m.Key] = m.Value
		}
	}
	setID(w.Header(), id)
	setSource(w.Header(), fromInvocation)
	return writeJSON(w, statusOf(f), body)
}

// statusOf returns the status of the response to a failure: its code, if a response with a body can have
// that status. Without the body the failure would look like a success.
func statusOf(f *journal.Failure) int {
	status := int(f.Code)
	if status < lowestFinalStatus || status > highestFinalStatus || status == http.StatusNoContent || status == http.StatusNotModified {
		return http.StatusInternalServerError
	}
	return status
}

// writeJSON sends a JSON response.
func writeJSON(w http.ResponseWriter, status int, body any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})) // fails only if the client has closed the connection
	return nil
}

var jsonType = []string{"application/json"}
