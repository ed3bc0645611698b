package kafka

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/ids"
	"platform/internal/otlp"
	"platform/internal/subscription"
	"platform/internal/tracing"
	"platform/partition/machine"
)

// TestTheSpanOfARecordIsTheParentOfItsInvocation continues the trace of the producer.
func TestTheSpanOfARecordIsTheParentOfItsInvocation(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tracer, err := tracing.New(t.Context(), tracing.Settings{
		Endpoint: "http://127.0.0.1:1", Export: otlp.Settings{Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = tracer.Close() })
	c := converter{&subscription.Subscription{ID: "sub_1"}, &Config{Tracer: tracer}}
	inv := machine.Invoke{ID: ids.Invocation{1}, Trace: machine.Trace{Parent: parent, State: "a=b"}}
	c.trace(&inv, &kgo.Record{Topic: "orders", Offset: 7})
	require.Equal(t, parent[:36], inv.Trace.Parent[:36])
	require.NotEqual(t, parent, inv.Trace.Parent)
	require.Equal(t, "a=b", inv.Trace.State)
	c.cfg = &Config{}
	inv.Trace.Parent = parent
	c.trace(&inv, &kgo.Record{Topic: "orders", Offset: 7})
	require.Equal(t, parent, inv.Trace.Parent)
}
