package query

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/proto/service"
)

// fromEntry has the journals in memory, and begins scans at the entry that they ask for.
type fromEntry struct{ *memory }

func (f fromEntry) Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error) {
	page, err := f.memory.Scan(ctx, id, s)
	page.Rows = slices.DeleteFunc(page.Rows, func(r partition.Row) bool {
		return bytes.Compare(partition.FromEntry(r.ID, uint32(r.Index)), s.From) < 0
	})
	return page, err
}

type marshaler interface{ MarshalVT() ([]byte, error) }

func TestEntryPayload(t *testing.T) {
	content := &service.Value{Content: []byte("value")}
	failed := &service.Failure{Code: 500, Message: "no"}
	id := ids.Invocation{7: 1, 15: 1}
	entries := []struct {
		kind    journal.Type
		message marshaler
		err     error // instead of the payload
	}{
		{journal.Input, &service.InputCommandMessage{Value: content}, nil},
		{journal.Output, &service.OutputCommandMessage{Result: &service.OutputCommandMessage_Value{Value: content}}, nil},
		{journal.Output, &service.OutputCommandMessage{Result: &service.OutputCommandMessage_Failure{Failure: failed}}, ErrNoPayload},
		{journal.SetState, &service.SetStateCommandMessage{Key: []byte("k"), Value: content}, nil},
		{journal.ClearState, &service.ClearStateCommandMessage{Key: []byte("k")}, ErrNoPayload},
		{journal.GetEagerState, &service.GetEagerStateCommandMessage{Key: []byte("k"), Result: &service.GetEagerStateCommandMessage_Value{Value: content}}, nil},
		{journal.GetEagerState, &service.GetEagerStateCommandMessage{Key: []byte("k"), Result: &service.GetEagerStateCommandMessage_Void{Void: &service.Void{}}}, ErrNoPayload},
		{journal.Call, &service.CallCommandMessage{ServiceName: "S", HandlerName: "h", Parameter: content.Content, InvocationIdNotificationIdx: 1, ResultCompletionId: 2}, nil},
		{journal.OneWayCall, &service.OneWayCallCommandMessage{ServiceName: "S", HandlerName: "h", Parameter: content.Content, InvocationIdNotificationIdx: 3}, nil},
		{journal.CompletePromise, &service.CompletePromiseCommandMessage{Key: "p", ResultCompletionId: 4, Completion: &service.CompletePromiseCommandMessage_CompletionValue{CompletionValue: content}}, nil},
		{journal.SendSignal, &service.SendSignalCommandMessage{
			TargetInvocationId: id.String(), SignalId: &service.SendSignalCommandMessage_Idx{Idx: 17}, Result: &service.SendSignalCommandMessage_Value{Value: content},
		}, nil},
		{journal.Sleep, &service.SleepCommandMessage{WakeUpTime: 1, ResultCompletionId: 5}, ErrNoPayload},
		{journal.RunCompletion, &service.NotificationTemplate{
			Id: &service.NotificationTemplate_CompletionId{CompletionId: 6}, Result: &service.NotificationTemplate_Value{Value: content},
		}, nil},
		{journal.RunCompletion, &service.NotificationTemplate{
			Id: &service.NotificationTemplate_CompletionId{CompletionId: 7}, Result: &service.NotificationTemplate_Failure{Failure: failed},
		}, ErrNoPayload},
	}
	m := &memory{rows: map[partition.Table][]partition.Row{}}
	for i, e := range entries {
		payload, err := e.message.MarshalVT()
		require.NoError(t, err)
		m.rows[partition.Journal] = append(m.rows[partition.Journal], partition.Row{
			ID: id, Index: uint64(i), Entry: journal.Entry{Type: e.kind, Payload: payload}, Size: len(payload),
		})
	}
	engine := newTestEngine(t, Config{Partitions: fromEntry{m}})
	for i, e := range entries {
		reserved := 0
		got, err := engine.EntryPayload(t.Context(), id, uint32(i), func(size int) error { reserved = size; return nil })
		require.ErrorIs(t, err, e.err, e.kind.Name())
		if e.err == nil {
			require.Equal(t, "value", string(got), e.kind.Name())
		}
		require.Equal(t, m.rows[partition.Journal][i].Size, reserved)
	}

	none := func(int) error { return nil }
	_, err := engine.EntryPayload(t.Context(), id, uint32(len(entries)), none)
	require.ErrorIs(t, err, ErrNoEntry)
	_, err = engine.EntryPayload(t.Context(), ids.Invocation{15: 9}, 0, none)
	require.ErrorIs(t, err, ErrNoEntry)

	full := errors.New("full")
	before := len(m.asked)
	_, err = engine.EntryPayload(t.Context(), id, 0, func(int) error { return full })
	require.ErrorIs(t, err, full)
	require.Len(t, m.asked, before+1, "the payload is not read without memory for it")
	require.Equal(t, partition.Heads, m.asked[before].Detail)
}
