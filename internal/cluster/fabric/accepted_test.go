package fabric

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/machine"
)

// When the connection breaks, a request counts as accepted only if the other node has kept
// it long enough.
func TestLostConnectionReportsAcceptedRequest(t *testing.T) {
	for name, least := range map[string]time.Duration{"accepted": 20 * time.Millisecond, "not long enough": time.Hour} {
		t.Run(name, func(t *testing.T) {
			p := newFake(true)
			began := make(chan struct{}, 2)
			p.call = func(ctx context.Context, _ *machine.Invoke) (e partition.Ending, o machine.Outcome, err error) {
				began <- struct{}{}
				<-ctx.Done()
				return e, o, ctx.Err()
			}
			p.await = func(ctx context.Context, _ ids.Invocation) (e partition.Ending, err error) {
				began <- struct{}{}
				<-ctx.Done()
				return e, ctx.Err()
			}
			r, n := pair(t, p)
			r.c.timeouts = timeouts{connect: time.Minute, ping: 5 * time.Millisecond, unresponsive: time.Minute, accepted: least}
			errs := make(chan error, 2)
			go func() { _, _, err := r.Call(t.Context(), invocation(1)); errs <- err }()
			go func() { _, err := r.Await(t.Context(), invocationID(2)); errs <- err }()
			<-began
			<-began
			accepted := time.Now()
			other, err := r.c.nodeConn(n.address)
			require.NoError(t, err)
			l, err := other.open()
			require.NoError(t, err)
			require.Eventually(t, func() bool { return l.responsiveSince(accepted) > 20*time.Millisecond }, time.Minute, time.Millisecond,
				"the other node responds to pings")
			n.rpc.Stop()
			for range 2 {
				require.Equal(t, least < time.Hour, WasAccepted(<-errs))
			}
		})
	}
}

// The lookup timeout restarts when a leader fails that has accepted the request.
func TestLookupTimeoutRestartsAfterAcceptedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster("a", "b")
		w.lead("a")
		w.nodes["a"].await = func(context.Context, ids.Invocation) (e partition.Ending, err error) {
			time.Sleep(time.Hour)
			w.lead("")
			time.AfterFunc(2*time.Second, func() { w.lead("b") })
			return e, markAccepted(ErrUnreachable, time.Hour, acceptedAfter)
		}
		w.nodes["b"].await = func(context.Context, ids.Invocation) (e partition.Ending, err error) {
			return partition.Ending{ExpiresAt: 7}, nil
		}
		e, err := w.handle().Await(t.Context(), invocationID(1))
		require.NoError(t, err)
		require.EqualValues(t, 7, e.ExpiresAt)
	})
}

// If no next leader is found, the error still reports that a leader had accepted the
// request.
func TestFailedLookupReportsAcceptedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster("a", "b")
		w.local = newFake(true)
		w.local.await = func(context.Context, ids.Invocation) (e partition.Ending, err error) {
			time.Sleep(time.Hour)
			w.local.set(false, raftgroup.Leader{})
			return e, partition.ErrNotLeader
		}
		_, err := w.handle().Await(t.Context(), invocationID(1))
		require.ErrorIs(t, err, raftgroup.ErrNotLeader)
		require.True(t, WasAccepted(err))
		_, err = w.handle().Await(t.Context(), invocationID(1))
		require.False(t, WasAccepted(err), "there was no leader")
	})
}
