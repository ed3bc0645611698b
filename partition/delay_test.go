package partition

import (
	"context"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

// nodeClock is the time that the nodes agree on, which differs from the machine's time.
type nodeClock struct{ off time.Duration }

func (c nodeClock) Now() time.Time           { return time.Now().Add(c.off) }
func (c nodeClock) AwaitNow(context.Context) {}

func TestDelaysUseTheLeadersClock(t *testing.T) {
	agreed := nodeClock{-time.Hour} // the clock of this machine is wrong
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Clock = agreed }, restate.NewService("Steps").Handler("do", restate.NewServiceHandler(
		func(_ restate.Context, what string) (string, error) { return what, nil })))
	p := c.partitions[0]
	require.NoError(t, p.WaitLeading(t.Context()))
	inv := request("Steps", "do", `"later"`)
	inv.Delay = (10 * time.Minute).Milliseconds()
	o, err := p.Invoke(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, machine.Scheduled, o.Status)
	require.WithinDuration(t, agreed.Now().Add(10*time.Minute), time.UnixMilli(o.StartAt), time.Minute)
	require.EqualValues(t, 10*60_000, inv.Delay, "a retry sends it unchanged")
	require.Zero(t, inv.StartAt)

	again, err := p.Invoke(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, machine.Existing, again.Code)
	require.Equal(t, o.StartAt, again.StartAt)

	soon := request("Steps", "do", `"soon"`)
	soon.Delay = 20
	end, o, err := p.Call(t.Context(), soon)
	require.NoError(t, err)
	require.Equal(t, machine.OK, o.Code)
	require.Nil(t, end.Result.Failure)
}
