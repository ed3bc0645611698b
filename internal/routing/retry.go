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

// failoverBudget limits how long a request is retried without a leader accepting it. Each
// failover has a separate budget and normally takes a fraction of it.
const failoverBudget = 7 * time.Second

// The backoff between retries doubles from minBackoff to maxBackoff. A random part of up to
// half of it is subtracted.
const (
	minBackoff = 2 * time.Millisecond
	maxBackoff = 200 * time.Millisecond
)

// retry calls send until a leader answers the request. It fails when no leader has accepted
// the request for failoverBudget; a request held by a leader may wait indefinitely and
// through any number of failovers. Retries are safe because IDs are deduplicated. Whether
// the client may send the request again, with a new ID, depends on safe and on whether all
// attempts are known to have had no effect.
func retry[T any](ctx context.Context, safe bool, send func() (T, error)) (T, error) {
	var limit <-chan time.Time
	definite, accepted := true, false
	backoff := minBackoff
	for {
		v, err := send()
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
			accepted, limit, backoff = true, nil, minBackoff
		}
		if limit == nil {
			limit = time.After(failoverBudget)
		}
		// After a failover all pending requests reach the new leader at once. Those that a
		// leader had accepted before are retried even if this overloads it.
		rejected := errors.Is(err, raftgroup.ErrOverloaded) && !accepted
		_, unserved := errors.AsType[*fabric.UnservedError](err)
		if rejected || unserved || !sleep(ctx, backoff-rand.N(backoff/2), limit) {
			return v, &UnavailableError{SafeToRetry: safe || definite, Err: Explain(err)}
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// sleep waits for d. It returns false if limit fires or ctx ends first.
func sleep(ctx context.Context, d time.Duration, limit <-chan time.Time) bool {
	t := time.NewTimer(d)
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
