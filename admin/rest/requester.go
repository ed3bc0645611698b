package rest

import (
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
)

// MaxReason limits the reason of a pause, in bytes. It is stored with the invocation or vqueue.
const MaxReason = 512

// CheckReason returns an error unless a text can be the reason that an operator gives for a pause.
func CheckReason(reason string) error {
	switch {
	case len(reason) > MaxReason:
		return BadRequest("the reason has %d bytes; at most %d are allowed", len(reason), MaxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl):
		return BadRequest("the reason must be one line of UTF-8 text without control characters")
	}
	return nil
}

// PauseRequest contains the origin of a pause and its reason.
type PauseRequest struct {
	By     string // see Requester
	Reason string // as given by the operator; may be empty
}

// PauseRequestOf returns the pause for which a client gives a reason.
func PauseRequestOf(c echo.Context, reason string) (PauseRequest, error) {
	if err := CheckReason(reason); err != nil {
		return PauseRequest{}, err
	}
	return PauseRequest{By: Requester(c), Reason: reason}, nil
}

// Requester returns the principal and network address of a client, as recorded with pauses.
func Requester(c echo.Context) string {
	address := RemoteAddress(c.Request())
	if name := access.From(c.Request().Context()).Name; name != "" {
		return name + " at " + address
	}
	return address
}

// RemoteAddress returns the IP address of the client of a request.
func RemoteAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}
