package partition

import (
	"context"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"
)

// Leadership is transferred while a handler executes a step, and no proposal is pending
// that would tell the leader about it.
func TestHandoverAbortsAttemptsFirst(t *testing.T) {
	began := make(chan context.Context, 10)
	release := make(chan struct{})
	slow := restate.NewService("Slow").Handler("do", restate.NewServiceHandler(
		func(ctx restate.Context, _ string) (int, error) {
			return restate.Run(ctx, func(ctx restate.RunContext) (int, error) {
				began <- ctx
				select {
				case <-release:
				case <-ctx.Done():
				}
				return 6, ctx.Err()
			})
		}))
	c := newReplicaSet(t, steady, slow)
	from := c.leader()
	to := (from + 1) % 3
	l, err := c.hosts[from].p.leader()
	require.NoError(t, err)
	answered := make(chan error, 1)
	inv := request("Slow", "do", `""`)
	go func() {
		_, err := c.call(t.Context(), inv)
		answered <- err
	}()
	first := <-began
	require.Eventually(t, func() bool {
		record, err := c.hosts[from].p.Find(t.Context(), inv.ID)
		return err == nil && record.Length == 2 // the step's command is stored, so no proposal is pending
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.hosts[from].p.TransferLeadership(t.Context(), c.servers(to)[0].ID))
	require.ErrorIs(t, context.Cause(l.ctx), errHandOver, "the leadership ended before the election")
	<-l.left
	<-first.Done()
	require.Equal(t, to, c.leader(from))
	<-began
	close(release)
	require.NoError(t, <-answered)
}

func TestHandoverReturnsOnceAttemptsAreAborted(t *testing.T) {
	c := newReplicaSet(t, steady)
	p := c.hosts[c.leader()].p
	l, err := p.leader()
	require.NoError(t, err)
	p.handOver(t.Context())
	select {
	case <-l.left:
	default:
		t.Fatal("the leadership continues")
	}
	p.handOver(t.Context()) // of a leadership that has ended, or of the next one
	require.Eventually(t, func() bool {
		next, err := p.leader()
		return err == nil && next.epoch > l.epoch
	}, time.Minute, time.Millisecond, "leadership is resumed if no other replica is elected")
}
