package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/errcode"
)

// encode returns a body as JSON.
func encode(body any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		panic(fmt.Sprintf("encode %T: %v", body, err)) // cannot fail: only types of the admin API are encoded
	}
	return buf.Bytes()
}

// WriteJSON responds with a JSON body.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	data := encode(body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // fails only if the client has closed the connection
}

// Respond responds to a request with a JSON body, and to reads also with its entity tag.
func Respond(c echo.Context, status int, body any) error {
	if method := c.Request().Method; status == http.StatusOK && (method == http.MethodGet || method == http.MethodHead) {
		writeVersioned(c.Response(), c.Request(), encode(body))
	} else {
		WriteJSON(c.Response(), status, body)
	}
	return nil
}

// Done responds without a body.
func Done(c echo.Context, status int) error {
	c.Response().WriteHeader(status)
	return nil
}

// Notice informs the client about a fact that may be unexpected.
type Notice struct {
	Code    errcode.Code `json:"code,omitempty"`
	Message string       `json:"message"`
}
