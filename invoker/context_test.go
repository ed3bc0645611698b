package invoker

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// TestAttemptsHaveTheContextOfTheirInvocation has baggage with and without a trace, and a
// deployment whose own headers replace it.
func TestAttemptsHaveTheContextOfTheirInvocation(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	seen := make(chan http.Header, 1)
	b := scripted(t, quickConfig(), func(x *exchange) {
		seen <- x.r.Header
		echo(x)
	})
	for n, c := range []struct {
		trace          machine.Trace
		own            map[string]string
		state, baggage []string
	}{
		{machine.Trace{}, nil, nil, nil},
		{machine.Trace{Parent: parent, State: "a=1", Baggage: "user=1,b=2"}, nil, []string{"a=1"}, []string{"user=1,b=2"}},
		{machine.Trace{Baggage: "user=1"}, nil, nil, []string{"user=1"}},
		{machine.Trace{Baggage: "user=1"}, map[string]string{"Baggage": "own=1"}, nil, []string{"own=1"}},
	} {
		b.change(func(d *metadata.Deployment) { d.AdditionalHeaders = c.own })
		id := ids.NewInvocation(1, [16]byte{15: byte(n)})
		ended := b.shard.ending(id)
		b.shard.submit(&machine.Invoke{ID: id, Target: greeter, Trace: c.trace, Input: journal.NewInput(nil, []byte(`"hi"`))}, func(machine.Outcome, error) {})
		require.Nil(t, receive(t, ended).Failure)
		h := <-seen
		require.Equal(t, c.trace.Parent, h.Get("Traceparent"))
		require.Equal(t, c.state, h["Tracestate"])
		require.Equal(t, c.baggage, h["Baggage"])
	}
}
