package partition

import (
	"sync/atomic"
	"testing"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/machine"
)

// The cluster's level rises during a call whose key contains commas. Calls with the same
// key, under either ID, receive its result, and later ones have distinct IDs.
func TestKeysWithCommasAreDistinctOnceTheLevelRises(t *testing.T) {
	var level, runs atomic.Int64
	level.Store(1)
	release, begun := make(chan struct{}), make(chan struct{}, 4)
	services := restate.NewObject("Echo").Handler("do", restate.NewObjectSharedHandler(func(ctx restate.ObjectSharedContext, what string) (string, error) {
		runs.Add(1)
		begun <- struct{}{}
		if what == "first" {
			<-release
		}
		return what, nil
	}))
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Level = func() feature.Level { return feature.Level(level.Load()) } }, services)
	p := c.partitions[0]
	require.NoError(t, p.WaitLeading(t.Context()))

	named := func(key, idempotencyKey, input string, request uint64) *machine.Invoke {
		inv := idempotentObject(key, idempotencyKey, input)
		inv.Request = request
		return inv
	}
	type answer struct {
		value string
		o     machine.Outcome
		err   error
	}
	call := func(inv *machine.Invoke) chan answer {
		out := make(chan answer, 1)
		go func() {
			e, o, err := p.Call(t.Context(), inv)
			out <- answer{string(e.Result.Value), o, err}
		}()
		return out
	}
	first := named("k,do,x", "y", `"first"`, 1)
	one := call(first)
	<-begun

	level.Store(2)
	again := named("k,do,x", "y", `"again"`, 3)
	two := call(again)
	newer := *again
	newer.Request, newer.ID = 4, ids.OfIdempotent("", "Echo", "k,do,x", "do", "y")
	three := call(&newer)
	o, err := p.Invoke(t.Context(), &newer)
	require.NoError(t, err)
	require.Equal(t, machine.Existing, o.Code)
	require.Equal(t, first.ID, o.ID, "it keeps its original ID")
	close(release)
	for _, answers := range []chan answer{one, two, three} {
		a := <-answers
		require.NoError(t, a.err)
		require.Equal(t, `"first"`, a.value)
	}
	require.EqualValues(t, 1, runs.Load())

	other := named("k2,do,x", "y", `"other"`, 5)
	a := <-call(other)
	require.NoError(t, a.err)
	require.Equal(t, `"other"`, a.value)
	require.Equal(t, ids.OfIdempotent("", "Echo", "k2,do,x", "do", "y"), a.o.ID, "it has a distinct ID")
	require.EqualValues(t, 2, runs.Load())
}

func idempotentObject(key, idempotencyKey, input string) *machine.Invoke {
	inv := request("Echo", "do", input)
	inv.Target = machine.Target{Service: "Echo", Key: key, Handler: "do", Type: target.ObjectShared}
	inv.IdempotencyKey = &idempotencyKey
	inv.ID = ids.LegacyOfIdempotent("", "Echo", key, "do", idempotencyKey)
	inv.Retention = machine.Retention{Completion: 3_600_000}
	return inv
}
