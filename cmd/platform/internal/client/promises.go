package client

import (
	"context"
	"encoding/json"
)

// Promise is a promise of a workflow. Failure is the reason of one that was rejected.
type Promise struct {
	Name      string          `json:"key"`
	Completed bool            `json:"completed"`
	Value     *string         `json:"completion_success_value_utf8"` // nil: no value, or one that is not text
	Bytes     json.RawMessage `json:"completion_success_value"`
	Failure   string          `json:"completion_failure"`
}

// Promises lists the promises of a workflow that a handler has used, or the one with a name.
func (c *Client) Promises(ctx context.Context, workflow Object, name string) (list []Promise, err error) {
	query := "SELECT key, completed, completion_success_value, completion_success_value_utf8, completion_failure FROM sys_promise WHERE service_name = " +
		Quote(workflow.Service) + " AND service_key = " + Quote(workflow.Key)
	if workflow.Scope == "" {
		query += " AND scope IS NULL"
	} else {
		query += " AND scope = " + Quote(workflow.Scope)
	}
	if name != "" {
		query += " AND key = " + Quote(name)
	}
	err = c.selectRows(ctx, query+" ORDER BY key", &list)
	return list, err
}
