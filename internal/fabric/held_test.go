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

// A request that another node held counts as accepted when the connection breaks, and
// one that it had only for a moment does not.
func TestARequestThatAnotherNodeHeldIsKnownAsSuch(t *testing.T) {
	for name, least := range map[string]time.Duration{"held": 20 * time.Millisecond, "a moment": time.Hour} {
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
			r.c.patience = patience{reach: time.Minute, ping: 5 * time.Millisecond, deaf: time.Minute, held: least}
			errs := make(chan error, 2)
			go func() { _, _, err := r.Call(t.Context(), invocation(1)); errs <- err }()
			go func() { _, err := r.Await(t.Context(), numbered(2)); errs <- err }()
			<-began
			<-began
			accepted := time.Now()
			other, err := r.c.peer(n.address)
			require.NoError(t, err)
			l, err := other.open()
			require.NoError(t, err)
			require.Eventually(t, func() bool { return l.heldSince(accepted) > 20*time.Millisecond }, time.Minute, time.Millisecond,
				"the other node gives signs of life")
			n.rpc.Stop()
			for range 2 {
				require.Equal(t, least < time.Hour, WasHeld(<-errs))
			}
		})
	}
}

// The search for the next leader has its full time when the former one had the request
// for longer than a search takes.
func TestTheSearchAfterALongWaitHasItsFullTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a", "b")
		w.lead("a")
		w.nodes["a"].await = func(context.Context, ids.Invocation) (e partition.Ending, err error) {
			time.Sleep(time.Hour)
			w.lead("")
			time.AfterFunc(2*time.Second, func() { w.lead("b") })
			return e, markHeld(ErrUnreachable, time.Hour, heldTime)
		}
		w.nodes["b"].await = func(context.Context, ids.Invocation) (e partition.Ending, err error) {
			return partition.Ending{ExpiresAt: 7}, nil
		}
		e, err := w.handle().Await(t.Context(), numbered(1))
		require.NoError(t, err)
		require.EqualValues(t, 7, e.ExpiresAt)
	})
}

// When no next leader is found, the failure still tells that there had been one.
func TestAFailedSearchTellsThatALeaderHeldTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld("a", "b")
		w.local = newFake(true)
		w.local.await = func(context.Context, ids.Invocation) (e partition.Ending, err error) {
			time.Sleep(time.Hour)
			w.local.set(false, raftgroup.Leader{})
			return e, partition.ErrNotLeader
		}
		_, err := w.handle().Await(t.Context(), numbered(1))
		require.ErrorIs(t, err, raftgroup.ErrNotLeader)
		require.True(t, WasHeld(err))
		_, err = w.handle().Await(t.Context(), numbered(1))
		require.False(t, WasHeld(err), "nobody led meanwhile")
	})
}
