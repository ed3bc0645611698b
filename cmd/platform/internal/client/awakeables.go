package client

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Awakeable is an awakeable that an invocation waits for.
type Awakeable struct {
	ID           string    `json:"id"`
	Invocation   string    `json:"invocation_id"`
	Status       string    `json:"invocation_status"`
	Target       string    `json:"target"`
	Scope        string    `json:"scope,omitempty"`
	WaitingSince time.Time `json:"waiting_since,omitzero"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
}

// AwakeableFilter selects awakeables; empty fields select all.
type AwakeableFilter struct {
	Service   []string
	Scope     string
	OlderThan time.Duration
}

// Awakeables lists the awakeables that invocations wait for, the oldest first.
func (c *Client) Awakeables(ctx context.Context, f AwakeableFilter, limit int) (list []Awakeable, err error) {
	var conditions []string
	if len(f.Service) > 0 {
		names := make([]string, len(f.Service))
		for i, name := range f.Service {
			names[i] = Quote(name)
		}
		conditions = append(conditions, "target_service_name IN ("+strings.Join(names, ", ")+")")
	}
	if f.Scope != "" {
		conditions = append(conditions, "scope = "+Quote(f.Scope))
	}
	if f.OlderThan > 0 {
		conditions = append(conditions, fmt.Sprintf("waiting_since <= now() - INTERVAL '%d milliseconds'", f.OlderThan.Milliseconds()))
	}
	query := "SELECT id, invocation_id, invocation_status, target, scope, waiting_since, created_at FROM sys_awakeable" + where(conditions)
	err = c.selectRows(ctx, fmt.Sprintf("%s ORDER BY waiting_since, id LIMIT %d", query, limit), &list)
	return list, err
}
