package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// VQueue is a virtual queue of flow control; absent fields are zero.
type VQueue struct {
	ID        string `json:"id"`
	Service   string `json:"service_name"`
	Scope     string `json:"scope"`
	LimitKey  string `json:"limit_key"`
	Lock      string `json:"lock_name"`
	Paused    bool   `json:"queue_is_paused"`
	PausedBy  string `json:"paused_by"`
	Reason    string `json:"pause_reason"` // of the pause
	Inbox     uint64 `json:"num_inbox"`
	Running   uint64 `json:"num_running"`
	Suspended uint64 `json:"num_suspended"`
	Held      uint64 `json:"num_paused"` // entries that are paused
	Finished  uint64 `json:"num_finished"`

	PausedAt       time.Time `json:"paused_at,omitzero"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
	LastEnqueuedAt time.Time `json:"last_enqueued_at,omitzero"`
	LastStartAt    time.Time `json:"last_start_at,omitzero"`
	LastFinishAt   time.Time `json:"last_finish_at,omitzero"`

	// Moving averages, as ISO 8601 durations.
	AverageQueue    string `json:"avg_queue_duration"`
	AverageRun      string `json:"avg_run_duration"`
	AverageEndToEnd string `json:"avg_end_to_end_duration"`
}

// VQueueHead is the first entry of a vqueue.
type VQueueHead struct {
	Status      string    `json:"status"`
	Entry       string    `json:"head_entry_id"`
	ScheduledAt time.Time `json:"scheduled_at,omitzero"`
	BlockedOn   string    `json:"blocked_on"`
	Details     string    `json:"blocked_on_json"`
}

// VQueueEntry is an entry of a vqueue.
type VQueueEntry struct {
	ID          string    `json:"entry_id"`
	Kind        string    `json:"entry_kind"`
	Stage       string    `json:"stage"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"created_at,omitzero"`
	Transition  time.Time `json:"transitioned_at,omitzero"`
	RunAt       time.Time `json:"run_at,omitzero"`
	NumAttempts int       `json:"num_attempts"`
}

// VQueueFilter selects vqueues; empty fields select all. Lock is the service/key of an
// object without a scope.
type VQueueFilter struct {
	Service, Scope, LimitKey, Lock string
	NoLimitKey                     bool // only those without a limit key
}

// String describes what the filter selects.
func (f VQueueFilter) String() string {
	text := f.Service
	if f.Lock != "" {
		text = f.Lock
	}
	if f.Scope != "" {
		text += " in scope " + f.Scope
	}
	if f.LimitKey != "" {
		text += ", limit key " + f.LimitKey
	}
	if f.NoLimitKey {
		text += " without a limit key"
	}
	return text
}

func (f VQueueFilter) where() string {
	var conditions []string
	for _, c := range [][2]string{{"service_name", f.Service}, {"scope", f.Scope}, {"limit_key", f.LimitKey}, {"lock_name", f.Lock}} {
		if c[1] != "" {
			conditions = append(conditions, c[0]+" = "+Quote(c[1]))
		}
	}
	if f.NoLimitKey {
		conditions = append(conditions, "limit_key IS NULL")
	}
	return where(conditions)
}

// VQueues lists up to limit vqueues, those with the most waiting entries first.
func (c *Client) VQueues(ctx context.Context, f VQueueFilter, limit int) (list []VQueue, err error) {
	err = c.selectRows(ctx, fmt.Sprintf("SELECT * FROM sys_vqueue_meta%s ORDER BY num_inbox DESC, num_running DESC, id LIMIT %d", f.where(), limit), &list)
	return list, err
}

// ErrNoVQueue means that a vqueue has no entries.
var ErrNoVQueue = errors.New("there is no such vqueue")

// VQueue returns a vqueue and, if there is one, its head. ErrNoVQueue if it does not exist.
func (c *Client) VQueue(ctx context.Context, id string) (q VQueue, head VQueueHead, err error) {
	var queues []VQueue
	if err := c.selectRows(ctx, "SELECT * FROM sys_vqueue_meta WHERE id = "+Quote(id), &queues); err != nil {
		return q, head, err
	}
	if len(queues) == 0 {
		return q, head, ErrNoVQueue
	}
	var heads []VQueueHead
	if err := c.selectRows(ctx, "SELECT * FROM sys_scheduler WHERE id = "+Quote(id), &heads); err != nil {
		return q, head, err
	}
	if len(heads) > 0 {
		head = heads[0]
	}
	return queues[0], head, nil
}

// Entries is the number of invocations in the vqueue, including finished ones.
func (q *VQueue) Entries() uint64 { return q.Inbox + q.Running + q.Suspended + q.Held + q.Finished }

// Order is a selection of the entries of a vqueue, and their order.
type Order string

// The orders. QueueOrder and NewestFirst require the server to read the whole queue. QueueOrder has the
// entries that run first, then those that wait in the order of their arrival, and those that have ended
// last. UnfinishedAsFound has only those that have not ended, in an arbitrary order.
const (
	AsFound           Order = ""
	UnfinishedAsFound Order = " AND stage != 'finished'"
	QueueOrder        Order = " ORDER BY CASE stage WHEN 'running' THEN 1 WHEN 'inbox' THEN 2 WHEN 'suspended' THEN 3 WHEN 'paused' THEN 4 ELSE 5 END, sequence_number, created_at"
	NewestFirst       Order = " ORDER BY created_at DESC, sequence_number DESC"
)

// VQueueEntries lists up to limit entries of a vqueue.
func (c *Client) VQueueEntries(ctx context.Context, id string, limit int, order Order) (list []VQueueEntry, err error) {
	err = c.selectRows(ctx, fmt.Sprintf("SELECT * FROM sys_vqueues WHERE id = %s%s LIMIT %d", Quote(id), order, limit), &list)
	return list, err
}

// PauseVQueue stops a vqueue from starting entries. The reason may be empty.
func (c *Client) PauseVQueue(ctx context.Context, id, reason string) error {
	path := "/vqueues/" + url.PathEscape(id) + "/pause"
	if reason != "" {
		path += "?" + url.Values{"reason": {reason}}.Encode()
	}
	_, err := c.adminJSON(ctx, http.MethodPost, path, nil, nil)
	return err
}

// ScopePause is the pause of all vqueues of a scope.
type ScopePause struct {
	Scope  string    `json:"scope"`
	At     time.Time `json:"paused_at,omitzero"`
	By     string    `json:"paused_by"`
	Reason string    `json:"pause_reason"`
}

// ScopePauses lists up to limit paused scopes, those paused last first, or the pause of one scope.
// Servers of earlier releases, which reject the query, have none. Tokens that are limited to services or scopes may not see them.
func (c *Client) ScopePauses(ctx context.Context, scope string, limit int) (list []ScopePause, err error) {
	query := "SELECT scope, paused_at, paused_by, pause_reason FROM sys_user_limits WHERE level = 'Scope' AND is_paused"
	if scope != "" {
		query += " AND scope = " + Quote(scope)
	}
	err = c.selectRows(ctx, fmt.Sprintf("%s ORDER BY paused_at DESC LIMIT %d", query, limit), &list)
	if HasStatus(err, http.StatusBadRequest) || HasStatus(err, http.StatusForbidden) {
		return nil, nil
	}
	return list, err
}

// ScopeUse is what the vqueues of a scope hold.
type ScopeUse struct {
	VQueues uint64 `json:"vqueues"`
	Inbox   uint64 `json:"inbox"`
	Running uint64 `json:"running"`
}

// ScopeUse counts the vqueues of a scope and their entries.
func (c *Client) ScopeUse(ctx context.Context, scope string) (ScopeUse, error) {
	var rows []ScopeUse
	err := c.selectRows(ctx, "SELECT COUNT(*) AS vqueues, COALESCE(SUM(num_inbox), 0) AS inbox, COALESCE(SUM(num_running), 0) AS running FROM sys_vqueue_meta WHERE scope = "+Quote(scope), &rows)
	if err != nil || len(rows) == 0 {
		return ScopeUse{}, err
	}
	return rows[0], nil
}

// PauseScope stops all vqueues of a scope from starting entries. The reason may be empty.
func (c *Client) PauseScope(ctx context.Context, scope, reason string) error {
	path := "/limits/scopes/" + url.PathEscape(scope) + "/pause"
	if reason != "" {
		path += "?" + url.Values{"reason": {reason}}.Encode()
	}
	_, err := c.adminJSON(ctx, http.MethodPost, path, nil, nil)
	return err
}

// ResumeScope lets the vqueues of a paused scope start entries again.
func (c *Client) ResumeScope(ctx context.Context, scope string) error {
	_, err := c.adminJSON(ctx, http.MethodPost, "/limits/scopes/"+url.PathEscape(scope)+"/resume", nil, nil)
	return err
}

// ResumeVQueue lets a paused vqueue start entries again.
func (c *Client) ResumeVQueue(ctx context.Context, id string) error {
	_, err := c.adminJSON(ctx, http.MethodPost, "/vqueues/"+url.PathEscape(id)+"/resume", nil, nil)
	return err
}
