package limits_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/units"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// frameOverhead is a generous bound of what an append adds to its only entry: header,
// terms, indexes, addresses.
const frameOverhead = 64 << 10

func TestEachStageAcceptsTheLargestMessageOfThePreviousOne(t *testing.T) {
	require.Less(t, limits.Message+limits.Names, limits.Command)
	require.Less(t, limits.Command+frameOverhead, limits.FirstReceive, "nodes of the first release can receive what is written beside them")
	require.Less(t, limits.FirstReceive+limits.Names/2, limits.StoredMessage, "what the first release accepted can be delivered")
	require.Less(t, limits.StoredMessage+frameOverhead, limits.StoredCommand)
	require.Less(t, limits.StoredCommand+frameOverhead, limits.Entry)
	require.Less(t, limits.Entry+frameOverhead, limits.Receive)
	require.Less(t, limits.Receive, math.MaxInt32, "gRPC and protobuf take no more")
	require.Less(t, limits.StoredCommand+frameOverhead, limits.Response)
	require.Less(t, limits.ProgressBatch, limits.Message)
	require.Less(t, limits.DeliverBatch, limits.Message)
}

// The chain holds with every configuration that the server starts with: the largest legal
// one is measured with the real encodings.
func TestLargestMessageFitsEveryStage(t *testing.T) {
	loaded, err := config.Load([]string{}, []string{fmt.Sprintf("PLATFORM_NETWORKING__MESSAGE_SIZE_LIMIT=%d", limits.Message)})
	require.NoError(t, err)
	for _, size := range []units.ByteSize{
		loaded.Config.Networking.MessageSizeLimit, loaded.Config.Ingress.RequestSizeLimit, loaded.Config.Worker.Invoker.MessageSizeLimit,
	} {
		require.Equal(t, units.ByteSize(limits.Message), size)
	}
	body := make([]byte, limits.Message)
	headers := strings.Repeat("h", 64<<10) // the most that the ingress reads
	key := strings.Repeat("k", limits.Names/2)
	id := ids.NewInvocation(1, [16]byte{1})
	fromIngress := &machine.Invoke{
		ID: id, Target: machine.Target{Service: "S", Key: headers, Handler: "h"}, IdempotencyKey: &headers, LimitKey: headers,
		Trace: machine.Trace{Parent: headers, State: headers, Baggage: headers},
		Input: journal.NewInput([]journal.Header{{Key: "k", Value: headers}}, body),
	}
	// The key of a callee is part of the message; that of its caller comes in addition.
	called := &machine.Invoke{
		ID: id, Target: machine.Target{Service: "S", Handler: "h"}, Source: machine.Source{Caller: id, CallerTarget: key + key},
		Trace: machine.Trace{Parent: headers, State: headers, Baggage: headers}, Input: journal.NewInput(nil, body), Sink: &machine.Sink{Caller: id},
	}
	answer := &machine.Complete{Sink: machine.Sink{Caller: id}, Result: journal.Result{Value: body}}
	for name, c := range map[string]machine.Command{
		"request": fromIngress,
		"call":    &machine.Deliver{From: 1, FirstSeq: 1, Messages: []machine.Message{called}},
		"answer":  &machine.Deliver{From: 1, FirstSeq: 1, Messages: []machine.Message{answer}},
		"step": &machine.Progress{ID: id, Steps: []machine.Step{
			{Kind: machine.StepCommand, Type: journal.Call, Payload: body, Callee: &machine.Callee{ID: id}},
		}},
		"steps": &machine.Progress{ID: id, Steps: []machine.Step{
			{Kind: machine.StepCommand, Type: journal.Output, Payload: body},
			{Kind: machine.StepCommand, Type: journal.Output, Payload: body[:limits.ProgressBatch]},
			{Kind: machine.StepEnd},
		}},
		"failure": &machine.Progress{ID: id, Steps: []machine.Step{{Kind: machine.StepPause, Failure: &machine.AttemptFailure{Message: string(body)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			command, err := codec.EncodeCommand(feature.Newest, c)
			require.NoError(t, err)
			require.Less(t, len(command), limits.Command)
			entry := codec.Seal(feature.Newest, math.MaxUint64, math.MaxInt64, [][]byte{command})
			require.Less(t, len(entry), limits.Entry)
			frame := &node.RaftFrame{
				Sequence: math.MaxUint64, GroupId: math.MaxUint32, Target: headers[:1000],
				AppendRequest: &node.AppendEntriesRequest{Entries: []*node.LogEntry{{Index: math.MaxUint64, Term: math.MaxUint64, Data: entry}}},
			}
			require.Less(t, frame.SizeVT(), limits.FirstReceive)
		})
	}
}

// A configuration beyond the cap does not start.
func TestConfigurationBeyondTheCapIsRefused(t *testing.T) {
	_, err := config.Load(nil, []string{fmt.Sprintf("PLATFORM_NETWORKING__MESSAGE_SIZE_LIMIT=%d", limits.Message+1)})
	require.ErrorContains(t, err, "[RT0002]")
	require.ErrorContains(t, err, "48.0 MiB")
}
