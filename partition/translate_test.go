package partition

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

// correctedClock is the time of day of a node that is wrong until it is corrected.
type correctedClock struct{ off atomic.Int64 }

func (c *correctedClock) Now() time.Time           { return time.Now().Add(time.Duration(c.off.Load())) }
func (c *correctedClock) AwaitNow(context.Context) {}

// While the partition time is an hour ahead of the time of day, or behind, handlers sleep
// and delay calls for as long as they ask.
func TestHandlersSleepAsLongAsTheyAskWhereverThePartitionTimeIs(t *testing.T) {
	const nap = 600 * time.Millisecond
	for name, lead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			services := restate.NewService("Steps").
				Handler("do", restate.NewServiceHandler(func(ctx restate.Context, _ string) (string, error) {
					return "", restate.Sleep(ctx, nap)
				})).
				Handler("later", restate.NewServiceHandler(func(ctx restate.Context, _ string) (string, error) {
					id := restate.ServiceSend(ctx, "Steps", "now").Send("x", restate.WithDelay(nap)).GetInvocationId()
					_, err := restate.AttachInvocation[string](ctx, id).Response()
					return "", err
				})).
				Handler("now", restate.NewServiceHandler(func(restate.Context, string) (string, error) { return "", nil }))
			wrong := new(correctedClock)
			wrong.off.Store(int64(lead))
			c := newTunedCluster(t, 2, func(cfg *Config) { cfg.Clock = wrong }, services)
			for _, p := range c.partitions {
				require.NoError(t, p.WaitLeading(t.Context()))
			}
			wrong.off.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, handler := range []string{"do", "later", "later", "later", "later"} {
				inv := request("Steps", handler, `"x"`)
				p := c.partitions[machine.PartitionOf(inv.ID.PartitionKey(), 2)]
				begin := time.Now()
				end, _, err := p.Call(ctx, inv)
				require.NoError(t, err)
				require.Nil(t, end.Result.Failure)
				require.GreaterOrEqual(t, time.Since(begin), nap-leadNoise, handler)
				require.Less(t, time.Since(begin), time.Minute, handler)
			}
		})
	}
}
