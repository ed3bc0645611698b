package ingress

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/internal/tracing"
	"platform/metadata"
	"platform/partition/machine"
)

// request is a call or send as its route describes it.
type request struct {
	path       string // {service}[/{key}]/{handler}, without the leading slash
	scope      string // empty: none
	sendSuffix bool   // the path may end in /send, which makes it a send
	oneWay     bool
}

func (s *Server) platformCall(c echo.Context) error {
	return s.route(c, request{path: c.ParamValues()[0]})
}

func (s *Server) platformSend(c echo.Context) error {
	return s.route(c, request{path: c.ParamValues()[0], oneWay: true})
}

// unprefixedCall serves the paths that begin with the name of a service.
func (s *Server) unprefixedCall(c echo.Context) error {
	return s.route(c, request{path: c.ParamValues()[0], sendSuffix: true})
}

// route finds the handler of a path and calls it.
func (s *Server) route(c echo.Context, to request) (err error) {
	r := c.Request()
	schemas := s.registry.Schemas()
	t, err := parseTarget(schemas, to.path, r.URL, to.sendSuffix)
	if err != nil { // do not tell which services and handlers exist
		if rejection := authorize(c, s.defaultAuth(), access.Invoke); rejection != nil {
			return rejection
		}
		service, _, _ := strings.Cut(to.path, "/")
		if p := access.From(r.Context()); !p.AllowsService(service) {
			return outsideLimits(p)
		}
		return err
	}
	if err := authorize(c, s.requiredAuth(t.service.Options), access.Invoke); err != nil {
		return err
	}
	t.scope, t.oneWay = to.scope, t.oneWay || to.oneWay
	if t.oneWay {
		countAs(c.Response().Writer, kindSend)
	}
	if err := checkTarget(access.From(r.Context()), t.machine()); err != nil {
		return err
	}
	options := metadata.Effective(t.handler, t.service, s.cfg.Defaults())
	if err := checkCallable(schemas, &t, options.Public); err != nil {
		return err
	}
	if !slices.Contains(getPost, r.Method) {
		return methodNotAllowed(r.Method, getPost)
	}
	mem := newReservation(r)
	defer mem.release()
	inv, err := s.invocation(c.Response(), r, &t, &options, mem)
	if err != nil {
		return err
	}
	defer s.trace(c, inv)(&err)
	if t.oneWay {
		return s.send(c, inv)
	}
	return s.call(c, &t, inv, mem)
}

// invocation converts a request to a request to the partition.
func (s *Server) invocation(w http.ResponseWriter, r *http.Request, t *parsedTarget, options *metadata.EffectiveOptions, mem *reservation) (*machine.Invoke, error) {
	now := s.cfg.now()
	inv := &machine.Invoke{Target: t.machine(), Trace: traceOf(r.Header), ServerVersion: s.cfg.Version}
	if err := readQuery(r, t, inv); err != nil {
		return nil, err
	}
	if err := readIdempotencyKey(r.Header, inv); err != nil {
		return nil, err
	}
	forward := s.cfg.ForwardHeaders
	if own := t.service.Options.ForwardHeaders; own != nil {
		forward = *own
	}
	payload, body, err := s.readInput(w, r, forward, mem)
	if err != nil {
		return nil, err
	}
	contentType, has := first(r.Header["Content-Type"])
	if err := t.handler.Input.Check(contentType, has, body); err != nil {
		return nil, badRequest("%v", err)
	}
	inv.Input = payload
	key := func() uint64 { return s.cfg.PartitionKey(len(payload)) }
	inv.ID = newID(inv.Target, inv.IdempotencyKey, s.ownerOfKeys(r.Context()), key, now)
	inv.Fresh = !inv.DerivedID()
	inv.Retention = machine.RetentionOf(options.Retention(inv.Target.Type, inv.IdempotencyKey != nil))
	return inv, nil
}

// maxTraceState bounds tracestate, of which W3C trace context requires 512 bytes to be passed on.
const maxTraceState = 2 << 10

// traceOf returns the caller's trace context and baggage, as far as they are valid.
func traceOf(h http.Header) machine.Trace {
	trace := machine.Trace{Baggage: tracing.Baggage(h["Baggage"])}
	if parent, _ := first(h["Traceparent"]); tracing.Valid(parent) {
		trace.Parent = parent
		if state := strings.Join(h["Tracestate"], ","); len(state) <= maxTraceState {
			trace.State = state
		}
	}
	return trace
}

// call responds with the result of an invocation.
func (s *Server) call(c echo.Context, t *parsedTarget, inv *machine.Invoke, mem *reservation) error {
	id, repeatable := inv.ID, inv.IdempotencyKey != nil
	response, err := s.invocations.Call(c.Request().Context(), inv, mem.release)
	if errors.Is(err, routing.ErrConflict) {
		if !response.ID.IsZero() {
			id = response.ID
		}
		return writeFailure(c.Response(), id, conflict)
	}
	if err != nil {
		return invocationProblem(c.Request().Context(), err, id, repeatable)
	}
	if response.ID.IsZero() {
		response.ID = id
	}
	if err := s.holdResult(c.Request().Context(), mem, inv, &response); err != nil {
		return err
	}
	return writeResponse(c.Response(), &response, &t.handler.Output)
}

// holdResult reserves memory for the result of a call. While there is none, the result is dropped;
// it is read again later. A result that is not kept, or is larger than what one connection may use,
// is counted regardless of the limits.
func (s *Server) holdResult(ctx context.Context, mem *reservation, inv *machine.Invoke, response *routing.Response) error {
	n := len(response.Result.Value)
	if mem.tryReserveResponse(n) {
		return nil
	}
	if inv.ShortRetention() || !mem.account.Allows(int64(n)) {
		mem.charge(n)
		return nil
	}
	repeatable := inv.IdempotencyKey != nil
	response.Result.Value = nil
	waiting, cancel := context.WithTimeout(ctx, s.cfg.resultTimeout)
	defer cancel()
	if !mem.awaitResponse(waiting, n) {
		if ctx.Err() != nil {
			return invocationProblem(ctx, ctx.Err(), response.ID, repeatable)
		}
		return noRoomForResult(response.ID, mem.account, repeatable)
	}
	again, err := s.invocations.Output(ctx, response.ID)
	if down, ok := errors.AsType[*routing.UnavailableError](err); ok && !repeatable {
		err = &routing.UnavailableError{Err: down.Err} // reading again is safe, calling again is not
	}
	if err != nil {
		return invocationProblem(ctx, err, response.ID, repeatable)
	}
	again.ID = response.ID
	*response = again
	return nil
}

// send responds that an invocation was accepted.
func (s *Server) send(c echo.Context, inv *machine.Invoke) error {
	id := inv.ID
	repeatable := inv.IdempotencyKey != nil || inv.Target.Type == target.WorkflowRun
	outcome, err := s.invocations.Send(c.Request().Context(), inv)
	if err != nil {
		return invocationProblem(c.Request().Context(), err, id, repeatable)
	}
	if !outcome.ID.IsZero() {
		id = outcome.ID
	}
	body, startAt := sendBody{ID: idText(id), Status: "Accepted"}, outcome.StartAt
	if outcome.Code == machine.Existing || outcome.Code == machine.Conflict {
		body.Status = "PreviouslyAccepted"
	} else if startAt == 0 && c.QueryParams().Has("delay") { // a delay of nothing
		startAt = s.cfg.now().UnixMilli()
	}
	if startAt != 0 {
		body.ExecutionTime = time.UnixMilli(startAt).UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
	}
	setID(c.Response().Header(), id)
	return writeJSON(c.Response(), http.StatusAccepted, body)
}

// sendBody is the response to a send.
type sendBody struct {
	ID            idText `json:"invocationId"`
	Status        string `json:"status"`
	ExecutionTime string `json:"executionTime,omitempty"`
}

// idText prints an invocation id in JSON.
type idText ids.Invocation

// MarshalText is the text form of the id.
func (id idText) MarshalText() ([]byte, error) { return ids.Invocation(id).AppendText(nil), nil }
