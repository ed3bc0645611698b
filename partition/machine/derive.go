package machine

import (
	"platform/internal/feature"
	"platform/internal/ids"
)

// Derived are the ids that follow from the target and idempotency key of a request whose
// id can be used again: the one of feature level 2, and the one of the first release if
// that one may belong to other keys as well. ok is false where they are the same or the
// id is not derived.
func Derived(t *Target, idempotencyKey *string) (id, legacy ids.Invocation, ok bool) {
	key := ""
	if idempotencyKey != nil {
		key = *idempotencyKey
	}
	if !t.reusable(idempotencyKey) || !ids.Ambiguous(t.Scope, t.Service, t.Key, key) {
		return id, legacy, false
	}
	if t.Type == WorkflowRun {
		id, legacy = ids.OfWorkflow(t.Scope, t.Service, t.Key), ids.LegacyOfWorkflow(t.Scope, t.Service, t.Key)
	} else {
		id, legacy = ids.OfIdempotent(t.Scope, t.Service, t.Key, t.Handler, key), ids.LegacyOfIdempotent(t.Scope, t.Service, t.Key, t.Handler, key)
	}
	return id, legacy, id != legacy
}

// resolve gives a request the id that it has from level 2 on, unless its invocation was
// made before that: then it keeps the one of the first release. Whoever sent the request
// may not know of the level yet. Both ids belong to this partition.
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

// SameAs reports whether both are the same handler under the same key, where a workflow
// has only one that runs. If such requests
// have the same legacy id, they have the same idempotency key, too.
func (t Target) SameAs(other Target) bool {
	return t.Scope == other.Scope && t.Service == other.Service && t.Key == other.Key && (t.Handler == other.Handler || t.Type == WorkflowRun)
}
