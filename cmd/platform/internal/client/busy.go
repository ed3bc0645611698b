package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HandlerCount is how many invocations of a handler are in a status.
type HandlerCount struct {
	Service string `json:"service"`
	Handler string `json:"handler"`
	Status  string `json:"status"`
	Count   int    `json:"n"`
	Oldest  string `json:"oldest"` // id of the one created first
}

// HandlerCounts counts the invocations of services in statuses.
func (c *Client) HandlerCounts(ctx context.Context, services, statuses []string) (counts []HandlerCount, err error) {
	// The id is that of the row with the earliest time.
	err = c.selectRows(ctx, fmt.Sprintf(`SELECT target_service_name AS service, target_handler_name AS handler, status, COUNT(*) AS n, id AS oldest, MIN(created_at)
FROM sys_invocation WHERE status IN (%s) AND target_service_name IN (%s) GROUP BY 1, 2, 3`, quotedList(statuses), quotedList(services)), &counts)
	return counts, err
}

// BusyKey is a key of an object or workflow for which invocations run or wait.
type BusyKey struct {
	Service string `json:"service"`
	Key     string `json:"key"`
	Scope   string `json:"scope"`
	Queue   int    `json:"queue"`  // invocations that wait
	Holder  string `json:"holder"` // id of the one that does not, if there is one
	All     int    `json:"in_all"` // such keys of the service
}

// BusyKeys returns, by service, up to limit keys with invocations of certain handlers in
// certain statuses, the longest queues first.
func (c *Client) BusyKeys(ctx context.Context, handlers map[string][]string, statuses []string, limit int) (keys []BusyKey, err error) {
	services := slices.Sorted(maps.Keys(handlers))
	var names []string
	for _, s := range services {
		for _, h := range handlers[s] {
			names = append(names, s+"/"+h)
		}
	}
	err = c.selectRows(ctx, fmt.Sprintf(`SELECT * FROM (
	SELECT *, ROW_NUMBER() OVER (PARTITION BY service ORDER BY queue DESC, key, scope) AS place, COUNT(*) OVER (PARTITION BY service) AS in_all FROM (
		SELECT target_service_name AS service, target_service_key AS key, scope, SUM(status = 'pending') AS queue,
			MAX(CASE WHEN status <> 'pending' THEN id END) AS holder
		FROM sys_invocation
		WHERE status IN (%s) AND target_service_name IN (%s) AND target_service_name || '/' || target_handler_name IN (%s) GROUP BY 1, 2, 3))
WHERE place <= %d ORDER BY service, place`, quotedList(statuses), quotedList(services), quotedList(names), limit), &keys)
	return keys, err
}

// InvocationRow returns the row of an invocation in sys_invocation; nil if there is none.
func (c *Client) InvocationRow(ctx context.Context, id string) (*Invocation, error) {
	var found []Invocation
	err := c.selectRows(ctx, `SELECT id, status, target_handler_name, created_at, modified_at, running_at, scheduled_start_at, retry_count, next_retry_at,
	last_failure_error_code FROM sys_invocation WHERE id = `+Quote(id), &found)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func quotedList(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = Quote(text)
	}
	return strings.Join(all, ", ")
}
