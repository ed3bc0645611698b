package admin

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
)

// copyRequest is the body of POST /invocations/:invocation_id/copy.
type copyRequest struct {
	Input  *string `json:"input"`
	Binary *[]byte `json:"input_base64"`
}

// copyInvocation starts an invocation of the same handler, key and scope with an edited input.
func (s *Server) copyInvocation(c echo.Context, id ids.Invocation) error {
	var r copyRequest
	if err := s.bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	var input *[]byte
	switch {
	case r.Input != nil && r.Binary != nil:
		return rest.Unprocessable("the input is given twice: as 'input' and as 'input_base64'")
	case r.Input != nil:
		text := []byte(*r.Input)
		input = &text
	case r.Binary != nil:
		input = r.Binary
	}
	made, err := s.invocations.Copy(c.Request().Context(), id, input)
	if err != nil {
		return operationError(id, fmt.Errorf("copy: %w", err))
	}
	return rest.Respond(c, http.StatusOK, restarted{New: made.String()})
}
