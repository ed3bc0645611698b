package ingress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/internal/httpserver"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/machine"
)

// targetBody describes an invocation in the body of an attach, output or lookup. Target determines
// which fields are required.
type targetBody struct {
	Target string  `json:"target"`
	Scope  *string `json:"scope"`

	WorkflowName *string `json:"workflowName"`
	WorkflowKey  *string `json:"workflowKey"`

	Service        *string `json:"service"`
	Key            *string `json:"key"`
	Handler        *string `json:"handler"`
	IdempotencyKey *string `json:"idempotencyKey"`

	InvocationID *string `json:"invocationId"`
}

// byBody reads the invocation from the request's body.
func (s *Server) byBody(handle resultHandler) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, body, err := s.readTarget(c)
		if err != nil {
			return err
		}
		return s.explainMissing(c, handle(c, id), body.names())
	}
}

// byBodyOrID handles a route that takes a target in its body: with the method GET, the ID in the
// path is missing.
func (s *Server) byBodyOrID(handle resultHandler) echo.HandlerFunc {
	byBody := s.byBody(handle)
	return func(c echo.Context) error {
		switch r := c.Request(); r.Method {
		case http.MethodPost:
			return byBody(c)
		case http.MethodGet:
			path := strings.TrimSuffix(r.URL.Path, "/")
			return badRequest("the id of the invocation is missing: GET %s/{invocation id}", path)
		default:
			return methodNotAllowed(r.Method, post)
		}
	}
}

// lookup responds with the id that a target has or would have.
func (s *Server) lookup(c echo.Context) error {
	id, _, err := s.readTarget(c)
	if err != nil {
		return err
	}
	return writeJSON(c.Response(), http.StatusOK, lookupBody{ID: idText(id)})
}

type lookupBody struct {
	ID idText `json:"invocationId"`
}

// maxTarget bounds a target body. Parsing takes much more time and memory than its bytes, which are all that a
// reservation covers. The names in requests are shorter, as the request line and the headers are.
const maxTarget = 256 << 10

// readTarget reads the body of a request, and returns the id of the invocation that it describes.
func (s *Server) readTarget(c echo.Context) (id ids.Invocation, body targetBody, err error) {
	var buf bytes.Buffer
	mem := newReservation(c.Request())
	defer mem.release()
	whole, err := s.readUntil(c.Response(), c.Request(), &buf, 0, maxTarget+1, mem)
	switch {
	case err != nil:
		return id, body, err
	case !whole || buf.Len() > maxTarget:
		return id, body, &problem{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the description of an invocation is larger than %d bytes", maxTarget)}
	}
	if err := decodeJSON(buf.Bytes(), &body); err != nil {
		return id, body, err
	}
	id, err = s.targetID(c.Request().Context(), &body)
	return id, body, err
}

// names returns the handler that a valid body names, if any.
func (b *targetBody) names() named {
	switch b.Target {
	case "workflow":
		return named{service: *b.WorkflowName, keyed: true}
	case "idempotentInvocation":
		return named{service: *b.Service, handler: *b.Handler, keyed: b.Key != nil}
	}
	return named{}
}

// decodeJSON reads exactly one JSON value; its error names the invalid field.
func decodeJSON(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(into)
	if err == nil {
		if _, err = dec.Token(); err == io.EOF {
			if name, repeated := httpserver.RepeatedKey(data, true); repeated {
				return badRequest("bad request body: field '%s' is given twice", name)
			}
			return nil
		}
		return badRequest("bad request body: more than one JSON value")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field != "" {
			return badRequest("bad request body: field '%s' must be a string, not %s", wrong.Field, wrong.Value)
		}
		return badRequest("bad request body: expected a JSON object, not %s", wrong.Value)
	}
	if errors.Is(err, io.EOF) {
		return badRequest("bad request body: it is empty, expected a JSON object with the field 'target'")
	}
	return badRequest("bad request body: expected a JSON object: %v", err)
}

// targetID returns the id of the described invocation.
func (s *Server) targetID(ctx context.Context, b *targetBody) (id ids.Invocation, err error) {
	scope, err := s.bodyScope(b.Scope)
	if err != nil {
		return id, err
	}
	switch b.Target {
	case "workflow":
		if err := needed(b.Target, field{"workflowName", b.WorkflowName}, field{"workflowKey", b.WorkflowKey}); err != nil {
			return id, err
		}
		return s.workflowID(ctx, scope, *b.WorkflowName, *b.WorkflowKey)
	case "idempotentInvocation":
		if err := needed(b.Target, field{"service", b.Service}, field{"handler", b.Handler}, field{"idempotencyKey", b.IdempotencyKey}); err != nil {
			return id, err
		}
		return s.idempotentID(ctx, scope, *b.Service, b.Key, *b.Handler, *b.IdempotencyKey)
	case "invocation":
		if err := needed(b.Target, field{"invocationId", b.InvocationID}); err != nil {
			return id, err
		}
		return parseID(*b.InvocationID)
	case "":
		return id, badRequest("bad request body: field 'target' is missing: it is \"workflow\", \"idempotentInvocation\" or \"invocation\"")
	}
	return id, badRequest("bad request body: field 'target' is '%s': it must be \"workflow\", \"idempotentInvocation\" or \"invocation\"", b.Target)
}

type field struct {
	name  string
	value *string
}

func needed(target string, fields ...field) error {
	for _, f := range fields {
		if f.value == nil {
			return badRequest("bad request body: field '%s' is missing, which target \"%s\" needs", f.name, target)
		}
	}
	return nil
}

func parseID(text string) (ids.Invocation, error) {
	id, err := ids.ParseInvocation(text)
	if err != nil {
		return id, badRequest("bad invocation id '%s': %v", text, err)
	}
	return id, nil
}

// idempotentID returns the id of the request with an idempotency key; key is nil for services
// without keys, scope empty for none.
func (s *Server) idempotentID(ctx context.Context, scope, service string, key *string, handler, idempotencyKey string) (ids.Invocation, error) {
	t := machine.Target{Scope: scope, Service: service, Handler: handler}
	if key != nil {
		t.Key, t.Type = *key, target.ObjectShared // the ids of handlers with a key are derived in the same way
	}
	return s.knownID(ctx, t, &idempotencyKey)
}

// workflowID returns the id of the run of a workflow.
func (s *Server) workflowID(ctx context.Context, scope, workflow, key string) (ids.Invocation, error) {
	return s.knownID(ctx, machine.Target{Scope: scope, Service: workflow, Key: key, Type: target.WorkflowRun}, nil)
}
