package flow

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/query"
	"platform/admin/rest"
	"platform/internal/ids"
)

// vqueueView is a vqueue with the state of its head.
type vqueueView struct {
	ID          string         `json:"id"`
	Service     string         `json:"service"`
	Scope       string         `json:"scope,omitempty"`
	LimitKey    string         `json:"limit_key,omitempty"`
	Object      string         `json:"object,omitempty"` // Service/key
	QueuePaused bool           `json:"queue_paused"`
	PausedAt    rest.Timestamp `json:"paused_at,omitzero"`
	PausedBy    string         `json:"paused_by,omitempty"`
	PauseReason string         `json:"pause_reason,omitempty"`
	Waiting     uint64         `json:"waiting"` // including scheduled ones
	Running     uint64         `json:"running"`
	Suspended   uint64         `json:"suspended"`
	Paused      uint64         `json:"paused"`
	Finished    uint64         `json:"finished"`
	LastStartAt rest.Timestamp `json:"last_start_at,omitzero"`
	// AverageWait and AverageRun are moving averages, ISO 8601; empty while nothing has started or ended.
	AverageWait string `json:"average_wait,omitempty"`
	AverageRun  string `json:"average_run,omitempty"`
	queueHead
}

// queueHead is the invocation of a vqueue that starts next. Its status is empty if none waits.
type queueHead struct {
	HeadStatus  string         `json:"head_status,omitempty"`
	HeadID      string         `json:"head_id,omitempty"`
	BlockedOn   string         `json:"blocked_on,omitempty"`
	ScheduledAt rest.Timestamp `json:"scheduled_at,omitzero"`
}

type vqueuePage struct {
	Queues []vqueueView `json:"vqueues"`
	Next   string       `json:"next_cursor,omitempty"`
}

// counterView is a counter of a flow-control limit.
type counterView struct {
	Scope       string  `json:"scope"`
	L1          string  `json:"l1,omitempty"`
	L2          string  `json:"l2,omitempty"`
	Level       string  `json:"level"`
	Usage       uint64  `json:"usage"`
	Concurrency *uint64 `json:"concurrency_limit,omitempty"`
	RulePattern string  `json:"rule_pattern,omitempty"`
	Waiting     uint64  `json:"waiting"`
	// Paused and the fields below describe the pause of a scope by an operator.
	Paused      bool           `json:"paused"`
	PausedAt    rest.Timestamp `json:"paused_at,omitzero"`
	PausedBy    string         `json:"paused_by,omitempty"`
	PauseReason string         `json:"pause_reason,omitempty"`
}

type counterPage struct {
	Counters []counterView `json:"counters"`
	Next     string        `json:"next_cursor,omitempty"`
}

// queueCursor and counterCursor are the sort keys of pages.
type (
	queueCursor struct {
		Waiting uint64
		ID      string
	}
	counterCursor struct {
		Waiting, Usage uint64
		Scope, L1, L2  string
	}
)

const queueSelect = "SELECT id, service_name AS service, scope, limit_key, lock_name AS object, queue_is_paused AS queue_paused, paused_at, paused_by, pause_reason, " +
	"num_inbox AS waiting, num_running AS running, num_suspended AS suspended, num_paused AS paused, num_finished AS finished, last_start_at, " +
	"avg_queue_duration AS average_wait, avg_run_duration AS average_run FROM sys_vqueue_meta"

// listQueues returns a page of the vqueues, the longest first.
func (s *Server) listQueues(c echo.Context) error {
	limit, err := rest.Limit(c)
	if err != nil {
		return err
	}
	where := []string{"lock_name IS NULL"}
	for parameter, column := range map[string]string{"service": "service_name", "scope": "scope", "limit_key": "limit_key"} {
		if value := c.QueryParam(parameter); value != "" {
			where = append(where, column+" = "+query.Quote(value))
		}
	}
	if text := c.QueryParam("cursor"); text != "" {
		var after queueCursor
		if err := rest.DecodeCursor(text, &after); err != nil {
			return err
		}
		where = append(where, fmt.Sprintf("(num_inbox < %d OR num_inbox = %[1]d AND id > %s)", after.Waiting, query.Quote(after.ID)))
	}
	queues, err := s.queueRows(c.Request().Context(), queueSelect+query.Where(where)+fmt.Sprintf(" ORDER BY num_inbox DESC, id LIMIT %d", limit+1))
	if err != nil {
		return err
	}
	page := vqueuePage{Queues: queues}
	if len(queues) > limit {
		last := &queues[limit-1]
		page = vqueuePage{Queues: queues[:limit], Next: rest.EncodeCursor(queueCursor{last.Waiting, last.ID})}
	}
	return rest.Respond(c, http.StatusOK, page)
}

// getQueue returns a vqueue, or the queue of an object without a scope.
func (s *Server) getQueue(c echo.Context) error {
	id, err := ids.ParseVQueue(c.Param("vqueue_id"))
	if err != nil {
		return rest.InvalidField("vqueue_id", err)
	}
	queues, err := s.queueRows(c.Request().Context(), queueSelect+" WHERE id = "+query.Quote(id.String()))
	if err != nil {
		return err
	}
	if len(queues) == 0 {
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The vqueue '%s' does not exist; a vqueue exists while it has invocations", id)}
	}
	return rest.Respond(c, http.StatusOK, queues[0])
}

// queueRows reads vqueues and the heads of those that are not empty.
func (s *Server) queueRows(ctx context.Context, sql string) ([]vqueueView, error) {
	queues, err := query.Select[vqueueView](ctx, s.cfg.Query, sql, query.Options{})
	if err != nil {
		return nil, err
	}
	var waiting []string
	for i := range queues {
		if queues[i].Waiting > 0 {
			waiting = append(waiting, query.Quote(queues[i].ID))
		}
	}
	if len(waiting) == 0 {
		return queues, nil
	}
	type head struct {
		ID string `json:"id"`
		queueHead
	}
	heads, err := query.Select[head](ctx, s.cfg.Query, "SELECT id, status AS head_status, head_entry_id AS head_id, blocked_on, scheduled_at FROM sys_scheduler WHERE id IN ("+strings.Join(waiting, ", ")+")", query.Options{})
	if err != nil {
		return nil, err
	}
	byID := make(map[string]queueHead, len(heads))
	for _, h := range heads {
		byID[h.ID] = h.queueHead
	}
	for i := range queues {
		queues[i].queueHead = byID[queues[i].ID]
	}
	return queues, nil
}

// listCounters returns a page of the counters of limits; those with the most waiting invocations
// come first.
func (s *Server) listCounters(c echo.Context) error {
	limit, err := rest.Limit(c)
	if err != nil {
		return err
	}
	var where []string
	for parameter, column := range map[string]string{"scope": "scope", "rule": "rule_pattern"} {
		if value := c.QueryParam(parameter); value != "" {
			where = append(where, column+" = "+query.Quote(value))
		}
	}
	const order = "-num_waiters, -usage, scope, COALESCE(l1, ''), COALESCE(l2, '')"
	if text := c.QueryParam("cursor"); text != "" {
		var after counterCursor
		if err := rest.DecodeCursor(text, &after); err != nil {
			return err
		}
		where = append(where, fmt.Sprintf("(%s) > (-%d, -%d, %s, %s, %s)", order, after.Waiting, after.Usage, query.Quote(after.Scope), query.Quote(after.L1), query.Quote(after.L2)))
	}
	counters, err := query.Select[counterView](c.Request().Context(), s.cfg.Query,
		"SELECT scope, l1, l2, level, usage, concurrency_limit, rule_pattern, num_waiters AS waiting, is_paused AS paused, paused_at, paused_by, pause_reason FROM sys_user_limits"+query.Where(where)+fmt.Sprintf(" ORDER BY %s LIMIT %d", order, limit+1), query.Options{})
	if err != nil {
		return err
	}
	page := counterPage{Counters: counters}
	if len(counters) > limit {
		last := &counters[limit-1]
		page = counterPage{Counters: counters[:limit], Next: rest.EncodeCursor(counterCursor{last.Waiting, last.Usage, last.Scope, last.L1, last.L2})}
	}
	return rest.Respond(c, http.StatusOK, page)
}
