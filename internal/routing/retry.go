package routing

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"platform/internal/fabric"
	"platform/internal/raftgroup"
	"platform/partition"
)

// failoverBudget is how long a request is retried without any leader accepting it. Each
// failover has a budget of its own, and takes a fraction of it.
const failoverBudget = 7 * time.Second

// The pause between two tries doubles from firstRetry to lastRetry. Up to half of it is
// left out at random.
const (
	firstRetry = 2 * time.Millisecond
	lastRetry  = 200 * time.Millisecond
)

// retry sends a request to a partition until it is answered. It gives up once no leader
// has accepted the request for failoverBudget; a request that waits at a leader may wait
// indefinitely and through any number of failovers. Retries are safe because ids are
// deduplicated. Whether the client may send the request anew, with a new id, depends on
// safe and on what happened to the tries.
func retry[T any](ctx context.Context, safe bool, ask func() (T, error)) (T, error) {
	var limit <-chan time.Time
	definite, accepted := true, false
	wait := firstRetry
	for {
		v, err := ask()
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, partition.ErrNotFound):
			return v, ErrNotFound
		case errors.Is(err, raftgroup.ErrTooLarge):
			return v, ErrTooLarge
		case !raftgroup.Definite(err) && !errors.Is(err, raftgroup.ErrUnknownOutcome):
			return v, err
		}
		definite = definite && raftgroup.Definite(err)
		if fabric.WasAccepted(err) {
			accepted, limit, wait = true, nil, firstRetry
		}
		if limit == nil {
			limit = time.After(failoverBudget)
		}
		// All who waited for a leader come to its successor at the same time; those that
		// had been accepted are not turned away by the queue that this makes.
		refused := errors.Is(err, raftgroup.ErrOverloaded) && !accepted
		if refused || !pause(ctx, wait-rand.N(wait/2), limit) {
			return v, &UnavailableError{SafeToRetry: safe || definite, Err: Explain(err)}
		}
		wait = min(2*wait, lastRetry)
	}
}

// pause waits a moment; false when the limit or the end of ctx came first.
func pause(ctx context.Context, wait time.Duration, limit <-chan time.Time) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-limit:
		return false
	case <-ctx.Done():
		return false
	}
}
