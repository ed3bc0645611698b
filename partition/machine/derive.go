package machine

import (
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
)

// Derived returns the IDs that follow from the target and idempotency key of a request
// whose ID can be reused: the level 2 ID, and the legacy ID, which other keys may share. ok
// is false if they are equal or the ID is not derived.
func Derived(t *Target, idempotencyKey *string) (id, legacy ids.Invocation, ok bool) {
	key := ""
	if idempotencyKey != nil {
		key = *idempotencyKey
	}
	if !t.reusable(idempotencyKey) || !ids.Ambiguous(t.Scope, t.Service, t.Key, key) {
		return id, legacy, false
	}
	if t.Type == target.WorkflowRun {
		id, legacy = ids.OfWorkflow(t.Scope, t.Service, t.Key), ids.LegacyOfWorkflow(t.Scope, t.Service, t.Key)
	} else {
		id, legacy = ids.OfIdempotent(t.Scope, t.Service, t.Key, t.Handler, key), ids.LegacyOfIdempotent(t.Scope, t.Service, t.Key, t.Handler, key)
	}
	return id, legacy, id != legacy
}

// resolve assigns a request the level 2 ID, unless its invocation was created before that
// level: then it keeps the legacy ID. The sender of the request may not know of the level
// yet. Both IDs belong to this partition.
func (m *Machine) resolve(c *Invoke) (*Invoke, error) {
	if m.level < feature.Level2 {
		return c, nil
	}
	id, legacy, ok := Derived(&c.Target, c.IdempotencyKey)
	if !ok || c.ID != id && c.ID != legacy {
		return c, nil
	}
	older, err := m.invocation(legacy)
	if err != nil {
		return nil, err
	}
	if older != nil && older.Target.SameAs(c.Target) {
		id = legacy
	}
	if id == c.ID {
		return c, nil
	}
	resolved := *c
	resolved.ID = id
	return &resolved, nil
}

// SameAs reports whether both are the same handler under the same key; a workflow has only
// one run handler. If such requests have the same legacy ID, they also have the same
// idempotency key.
func (t Target) SameAs(other Target) bool {
	return t.Scope == other.Scope && t.Service == other.Service && t.Key == other.Key && (t.Handler == other.Handler || t.Type == target.WorkflowRun)
}
