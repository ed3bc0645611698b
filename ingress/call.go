package ingress

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/suggest"
	"platform/internal/target"
	"platform/internal/tracing"
	"platform/internal/units"
	"platform/metadata"
	"platform/partition/machine"
)

// request is a call or send as its route describes it.
type request struct {
	path    string // {service}[/{key}]/{handler}, without the leading slash
	scope   string // empty: none
	classic bool   // the path may end in /send
	oneWay  bool
}

func (s *Server) platformCall(c echo.Context) error {
	return s.route(c, request{path: c.ParamValues()[0]})
}

func (s *Server) platformSend(c echo.Context) error {
	return s.route(c, request{path: c.ParamValues()[0], oneWay: true})
}

func (s *Server) classic(c echo.Context) error {
	return s.route(c, request{path: c.ParamValues()[0], classic: true})
}

// route finds the handler of a path and calls it.
func (s *Server) route(c echo.Context, to request) (err error) {
	r := c.Request()
	schemas := s.registry.Schemas()
	t, err := parseTarget(schemas, to.path, r.URL, to.classic)
	if err != nil {
		if refusal := authorize(c, s.byDefault(), access.Invoke); refusal != nil {
			return refusal // do not tell which services exist
		}
		return err
	}
	if err := authorize(c, s.requiredBy(t.service.Options), access.Invoke); err != nil {
		return err
	}
	t.scope, t.oneWay = to.scope, t.oneWay || to.oneWay
	if t.oneWay {
		countAs(c.Response().Writer, sending)
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
	mem := hold(r)
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
func (s *Server) invocation(w http.ResponseWriter, r *http.Request, t *parsedTarget, options *metadata.EffectiveOptions, mem *held) (*machine.Invoke, error) {
	now := s.cfg.Now()
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
	inv.ID = newID(inv.Target, inv.IdempotencyKey, s.ownerOfKeys(r.Context()), now)
	inv.Retention = machine.RetentionOf(options.Retention(inv.Target.Type, inv.IdempotencyKey != nil))
	return inv, nil
}

// parameters are the query parameters that the ingress interprets.
var parameters = []string{"delay", "limit-key"}

// readQuery reads the parameters from the query and the equivalent headers. The handler gets the
// whole query in a header and may have parameters of its own, including malformed ones; only names
// that resemble one of the server's are refused.
func readQuery(r *http.Request, t *parsedTarget, inv *machine.Invoke) error {
	var query url.Values
	if r.URL.RawQuery != "" {
		var err error
		if query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			if name := malformed(r.URL.RawQuery, parameters...); name != "" {
				return badRequest("bad %s: the query cannot be decoded: %v", name, err)
			}
		}
	}
	for _, name := range parameters {
		if values := query[name]; len(values) > 1 {
			return badRequest("bad %s: the query parameter is given %d times", name, len(values))
		}
	}
	for name := range query {
		if near := suggest.Nearest(name, parameters); near != "" && name != near {
			return badRequest("unknown query parameter '%s'; did you mean '%s'?", name, near)
		}
	}
	if err := readLimitKey(r.Header, query, inv); err != nil {
		return err
	}
	if err := readPriority(r.Header, inv); err != nil {
		return err
	}
	if !query.Has("delay") {
		return nil
	}
	if !t.oneWay {
		return badRequest("bad delay: only sends can be delayed, a call waits for the result")
	}
	delay, err := units.ParseDuration(query.Get("delay"))
	if err != nil {
		return badRequest("bad delay: %v; examples are 10s, 1h 30m and PT90S", err)
	}
	inv.Delay = delay.Milliseconds()
	return nil
}

// malformed returns the first of the named parameters that a query has in a form that the decoder
// skips: a send without its delay would run immediately.
func malformed(query string, names ...string) string {
	for part := range strings.SplitSeq(query, "&") {
		if _, err := url.ParseQuery(part); err == nil {
			continue
		}
		for piece := range strings.SplitSeq(part, ";") {
			name, _, _ := strings.Cut(piece, "=")
			if slices.Contains(names, name) {
				return name
			}
		}
	}
	return ""
}

func readIdempotencyKey(h http.Header, inv *machine.Invoke) error {
	key, has := first(h["Idempotency-Key"])
	switch {
	case !has:
		return nil
	case inv.Target.Type == target.WorkflowRun:
		return badRequest("bad idempotency key: the run of a workflow cannot have one, since its key already makes it run once")
	case !isASCII(key):
		return badRequest("bad header: the value of 'idempotency-key' has characters outside ASCII")
	case key == "":
		// Every caller with an empty key would get the result of the first one.
		return badRequest("bad header: 'idempotency-key' is empty; give it a value that identifies this request, or leave it out")
	case len(h["Idempotency-Key"]) > 1:
		return badRequest("bad header: 'idempotency-key' is given %d times", len(h["Idempotency-Key"]))
	}
	inv.IdempotencyKey = &key
	return nil
}

func first(values []string) (string, bool) {
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
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
func (s *Server) call(c echo.Context, t *parsedTarget, inv *machine.Invoke, mem *held) error {
	id, repeatable := inv.ID, inv.IdempotencyKey != nil
	response, err := s.invocations.Call(c.Request().Context(), inv, mem.release)
	if errors.Is(err, routing.ErrConflict) {
		if !response.ID.IsZero() {
			id = response.ID
		}
		return writeFailure(c.Response(), id, conflict)
	}
	if err != nil {
		return s.explain(c.Request().Context(), err, id, repeatable)
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
func (s *Server) holdResult(ctx context.Context, mem *held, inv *machine.Invoke, response *routing.Response) error {
	n := len(response.Result.Value)
	if mem.tryReserveResponse(n) {
		return nil
	}
	if inv.ShortRetention() || !mem.account.Allows(int64(n)) {
		mem.charge(n)
		return nil
	}
	response.Result.Value = nil
	waiting, cancel := context.WithTimeout(ctx, s.cfg.ResultTimeout)
	defer cancel()
	if !mem.awaitAnswer(waiting, n) {
		if ctx.Err() != nil {
			return s.explain(ctx, ctx.Err(), response.ID, true)
		}
		return noRoomForResult(response.ID, mem.account, inv.IdempotencyKey != nil)
	}
	again, err := s.invocations.Output(ctx, response.ID)
	if err != nil {
		return s.explain(ctx, err, response.ID, true)
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
		return s.explain(c.Request().Context(), err, id, repeatable)
	}
	if !outcome.ID.IsZero() {
		id = outcome.ID
	}
	body, startAt := sendBody{ID: idText(id), Status: "Accepted"}, outcome.StartAt
	if outcome.Code == machine.Existing || outcome.Code == machine.Conflict {
		body.Status = "PreviouslyAccepted"
	} else if startAt == 0 && c.QueryParams().Has("delay") { // a delay of nothing
		startAt = s.cfg.Now().UnixMilli()
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
