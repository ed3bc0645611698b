package ids

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

// Route is the partition key of what has a scope or a key. A scope wins: one
// partition admits for all of it.
func Route(scope, key string) uint64 {
	if scope != "" {
		return HashKey(scope)
	}
	return HashKey(key)
}
