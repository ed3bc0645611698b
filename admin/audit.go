package admin

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"

	"platform/admin/rest"
	"platform/internal/access"
	"platform/metadata"
)

// auditTimeout limits the time for writing an audit record, while the client waits for the
// response.
const auditTimeout = 5 * time.Second

// dryRunTimeout is the same for a dry run, which shows what a cluster without a leader of its metadata can do. Then
// its record is in the log of the node.
const dryRunTimeout = time.Second

// audited returns the handler of a route whose requests are recorded in the audit log. A change of
// the metadata has its record in the same log entry; other actions are recorded after they were
// executed.
func (s *Server) audited(r rest.Route) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, recorded := metadata.WithAction(c.Request().Context(), s.actionOf(c, r))
		c.SetRequest(c.Request().WithContext(ctx))
		err := r.Handle(c)
		if !recorded() {
			s.record(c, r, err)
		}
		return err
	}
}

// auditedRead returns the handler of a route that reads payloads. With Config.AuditReads, the
// access is recorded before the read, so that a client that disconnects early is recorded too.
func (s *Server) auditedRead(r rest.Route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.recordRead(c, r.Method+" "+r.Path, c.Request().URL.RequestURI()); err != nil {
			return err
		}
		return r.Handle(c)
	}
}

// recordRead adds an audit record for a request that is about to read payloads. If the record
// cannot be written, it returns an error and the request must not be executed.
func (s *Server) recordRead(c echo.Context, action, object string) error {
	if !s.cfg.AuditReads {
		return nil
	}
	p := access.From(c.Request().Context())
	ctx, cancel := context.WithTimeout(c.Request().Context(), auditTimeout)
	defer cancel()
	err := s.registry.RecordAction(ctx, metadata.Action{
		Principal: p.Name, Token: p.Token, Address: rest.RemoteAddress(c.Request()), Node: s.cfg.Node, Action: action, Object: access.WithoutSecrets(object),
	})
	if err != nil {
		s.log.Error("read not recorded in the audit log", "err", err, "action", action)
		return &rest.Error{Status: http.StatusServiceUnavailable, Message: "the request was not executed because it cannot be recorded in the audit log at the moment, which security.audit-reads requires; retry later"}
	}
	return nil
}

// record adds an audit record for a request that failed with err, or whose response has been sent.
// Requests that changed nothing are rate-limited.
func (s *Server) record(c echo.Context, r rest.Route, err error) {
	action := s.actionOf(c, r)
	action.Status = uint32(c.Response().Status)
	if err != nil {
		f := s.explain(c.Request(), err)
		action.Status, action.Outcome = uint32(f.Status), access.WithoutSecrets(f.Message)
	}
	stated := rest.AuditedOf(c)
	if stated.DryRun {
		action.Outcome = strings.TrimSuffix("dry run: "+action.Outcome, ": ")
	}
	p := access.From(c.Request().Context())
	nothing := stated.Nothing || err != nil && !uncertain(int(action.Status))
	omitted, ok := s.quiet.admit(p, nothing)
	if !ok {
		return
	}
	action.Omitted = omitted
	timeout := auditTimeout
	if stated.DryRun {
		timeout = dryRunTimeout
	}
	s.writeRecord(c, action, timeout)
}

// recordRejected adds an audit record of a client without a valid token that changed nothing, at a
// bounded rate.
func (s *Server) recordRejected(c echo.Context, action metadata.Action) {
	omitted, ok := s.quiet.admit(&access.Principal{}, true)
	if !ok {
		return
	}
	action.Omitted = omitted
	s.writeRecord(c, action, auditTimeout)
}

// writeRecord adds an audit record of a request that has been executed, also if its client has disconnected. If
// that is not possible, the record is written to the log.
func (s *Server) writeRecord(c echo.Context, action metadata.Action, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), timeout)
	defer cancel()
	if err := s.registry.RecordAction(ctx, action); err != nil {
		s.log.Error("action not recorded in the audit log", "err", err, "principal", action.Principal, "token", action.Token, "address", action.Address,
			"action", action.Action, "object", action.Object, "status", action.Status)
	}
}

// uncertain reports whether something may have changed although the request failed with a status: after
// a server error, and also if the client did not wait for the outcome, since otherwise it could hide what it
// does by closing connections.
func uncertain(status int) bool {
	return status >= http.StatusInternalServerError || status == statusClientClosed
}

func (s *Server) actionOf(c echo.Context, r rest.Route) metadata.Action {
	request, p := c.Request(), access.From(c.Request().Context())
	stated := rest.AuditedOf(c)
	return metadata.Action{
		Principal: p.Name, Token: p.Token, Address: rest.RemoteAddress(request), Node: s.cfg.Node,
		Action: r.Method + " " + r.Path, Object: stated.Object, Objects: stated.Objects, Reason: access.WithoutSecrets(c.QueryParam("reason")),
	}
}

// Rate limits of records of requests that change nothing. For each principal, a burst of quietBurst
// is recorded, then one per quietInterval, or one per unauthenticatedInterval without a valid
// token. The next record contains the number of omitted ones.
const (
	quietBurst              = 20
	quietInterval           = 10 * time.Second
	unauthenticatedInterval = 10 * time.Minute
	maxQuiet                = 1000 // principals; additional ones share a limit
)

// quietRequests limits the rate of audit records of requests that changed nothing.
type quietRequests struct {
	mu sync.Mutex // covers by
	by map[string]*quietPrincipal
}

type quietPrincipal struct {
	limit   *rate.Limiter
	omitted uint32
}

// admit reports whether a request is recorded. omitted is the number of requests of the principal
// that were not recorded since its last record.
func (q *quietRequests) admit(p *access.Principal, nothing bool) (omitted uint32, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	who := q.of(p)
	if nothing && !who.limit.Allow() {
		who.omitted++
		return 0, false
	}
	omitted, who.omitted = who.omitted, 0
	return omitted, true
}

func (q *quietRequests) of(p *access.Principal) *quietPrincipal {
	name, interval := "token "+p.Name, quietInterval
	if len(p.Roles) == 0 {
		name, interval = "unauthenticated", unauthenticatedInterval
	}
	if _, known := q.by[name]; !known && len(q.by) >= maxQuiet {
		q.forgetIdle()
		if len(q.by) >= maxQuiet {
			name = "others"
		}
	}
	who := q.by[name]
	if who == nil {
		who = &quietPrincipal{limit: rate.NewLimiter(rate.Every(interval), quietBurst)}
		q.by[name] = who
	}
	return who
}

// forgetIdle removes the principals whose rate limiter is full again and that have no omitted
// requests.
func (q *quietRequests) forgetIdle() {
	for name, who := range q.by {
		if who.omitted == 0 && who.limit.Tokens() >= quietBurst {
			delete(q.by, name)
		}
	}
}
