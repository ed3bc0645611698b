package routing

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"platform/internal/cluster/fabric"
	"platform/internal/raftgroup"
	"platform/partition"
)

// The backoff between retries doubles from minBackoff to maxBackoff. A random part of up to
// half of it is subtracted.
const (
	minBackoff = 2 * time.Millisecond
	maxBackoff = 200 * time.Millisecond
)

// errMaybeExpired is the reason why an invocation that the leader no longer knows is not
// reported as unknown: the request may have been waiting for it on an earlier leader.
var errMaybeExpired = errors.New("the leader of the partition changed during the request, and the new one does not know the invocation; its result may have expired meanwhile")

// retry calls send until a leader responds to the request. It fails when no leader has accepted
// the request for fabric.FailoverBudget; a request held by a leader may wait indefinitely and
// through any number of failovers. Retries and the lookups of the leader in each of them
// share the budget, whose end the context of send carries. Retries are safe because IDs are deduplicated. Whether
// the client may send the request again, with a new ID, depends on safe and on whether all
// attempts are known to have had no effect.
func retry[T any](ctx context.Context, safe bool, send func(context.Context) (T, error)) (T, error) {
	var deadline time.Time // zero until a first attempt fails
	attempt := ctx
	definite, accepted, interrupted := true, false, false
	backoff := minBackoff
	for {
		v, err := send(attempt)
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, partition.ErrNotFound) && (interrupted || fabric.WasInterrupted(err)):
			return v, &UnavailableError{SafeToRetry: true, Err: errMaybeExpired}
		case errors.Is(err, partition.ErrNotFound):
			return v, ErrNotFound
		case errors.Is(err, raftgroup.ErrTooLarge):
			return v, ErrTooLarge
		case !raftgroup.Definite(err) && !errors.Is(err, raftgroup.ErrUnknownOutcome):
			return v, err
		}
		definite = definite && raftgroup.Definite(err)
		interrupted = interrupted || fabric.WasAccepted(err) || fabric.WasInterrupted(err) || errors.Is(err, raftgroup.ErrUnknownOutcome)
		if fabric.WasAccepted(err) {
			accepted, deadline, backoff = true, time.Time{}, minBackoff
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(fabric.FailoverBudget)
			attempt = fabric.WithLookupDeadline(ctx, deadline)
		}
		// After a failover all pending requests reach the new leader simultaneously. Those that a
		// leader had accepted before are retried even if this overloads it.
		rejected := errors.Is(err, raftgroup.ErrOverloaded) && !accepted
		_, unserved := errors.AsType[*fabric.UnservedError](err)
		if rejected || unserved || fabric.TimedOut(err) || !sleep(ctx, backoff-rand.N(backoff/2), deadline) {
			return v, &UnavailableError{SafeToRetry: safe || definite, Err: Explain(err)}
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// sleep waits for d. It returns false if deadline comes or ctx ends first.
func sleep(ctx context.Context, d time.Duration, deadline time.Time) bool {
	if time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
