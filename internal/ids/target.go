package ids

import "encoding/binary"

// OfWorkflow is the id of a workflow's run; scope is empty for none.
func OfWorkflow(scope, workflow, key string) Invocation {
	return NewInvocation(Route(scope, key), WorkflowUnique(scope, workflow, key))
}

// OfIdempotent is the id of a request with an idempotency key; key is empty for
// handlers that have none.
func OfIdempotent(scope, service, key, handler, idempotencyKey string) Invocation {
	routing := key
	if routing == "" {
		routing = idempotencyKey
	}
	return NewInvocation(Route(scope, routing), IdempotentUnique(scope, service, key, handler, idempotencyKey))
}

// LegacyOfWorkflow is OfWorkflow as the first release derives it.
func LegacyOfWorkflow(scope, workflow, key string) Invocation {
	return NewInvocation(Route(scope, key), uniqueOf("wf", scope, workflow, key))
}

// LegacyOfIdempotent is OfIdempotent as the first release derives it.
func LegacyOfIdempotent(scope, service, key, handler, idempotencyKey string) Invocation {
	id := OfIdempotent(scope, service, key, handler, idempotencyKey)
	return NewInvocation(id.PartitionKey(), idempotentUnique(scope, service, key, handler, idempotencyKey))
}

// OfPrivate is the id of a request with an idempotency key that belongs to a principal: others get
// another id for the same key. It is in the same partition as OfIdempotent. Like all ids that follow
// from keys, it is not a secret.
func OfPrivate(principal, scope, service, key, handler, idempotencyKey string) Invocation {
	id := OfIdempotent(scope, service, key, handler, idempotencyKey)
	return NewInvocation(id.PartitionKey(), privateUnique(principal, scope, service, key, handler, idempotencyKey))
}

// Route is the partition key of what has a scope or a key. A scope wins: one
// partition admits for all of it.
func Route(scope, key string) uint64 {
	if scope != "" {
		return HashKey(scope)
	}
	return HashKey(key)
}

// OrderedUnique is a unique part that grows with time, laid out like a ULID: 48 bits
// of milliseconds since 1970, then 80 of chance.
func OrderedUnique(millis int64, chance func() uint64) (u [16]byte) {
	binary.BigEndian.PutUint64(u[:8], uint64(millis)<<16|chance()>>48)
	binary.BigEndian.PutUint64(u[8:], chance())
	return u
}
