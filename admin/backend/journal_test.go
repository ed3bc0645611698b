package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// longJournal is a partition with one invocation, whose journal does not fit into a message.
type longJournal struct {
	fabric.Replica
	invocation *machine.Invocation
	journal    []journal.Entry
	pages      int
}

func (l *longJournal) Inspect(_ context.Context, _ ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error) {
	if withJournal {
		return partition.Record{}, nil, errors.New("the response is larger than a message")
	}
	return partition.Record{Invocation: l.invocation}, nil, nil
}

func (l *longJournal) Scan(_ context.Context, s *partition.Scan) (page partition.Page, err error) {
	const rows = 2
	l.pages++
	from := 0
	if s.From != nil {
		from = int(binary.BigEndian.Uint32(s.From))
	}
	for i := from; i < min(from+rows, len(l.journal)); i++ {
		page.Rows = append(page.Rows, partition.Row{ID: s.ID, Index: uint64(i), Entry: l.journal[i]})
	}
	if from+rows < len(l.journal) {
		page.Next = binary.BigEndian.AppendUint32(nil, uint32(from+rows))
	}
	return page, nil
}

func TestALongJournalIsReadInPages(t *testing.T) {
	call, err := (&service.CallCommandMessage{ServiceName: "Other", HandlerName: "h", InvocationIdNotificationIdx: 7}).MarshalVT()
	require.NoError(t, err)
	l := &longJournal{
		invocation: &machine.Invocation{ID: ids.NewInvocation(1, [16]byte{1}), Target: machine.Target{Service: "S", Handler: "h", Type: target.Service}, Length: 4},
		journal: []journal.Entry{
			{Type: journal.Input, Payload: journal.NewInput(nil, []byte("in"))},
			{Type: journal.Call, Payload: call},
			{Type: journal.Sleep},
			{Type: journal.CallInvocationIDCompletion, Payload: journal.NewInvocationID(7, "inv_callee")},
			{Type: journal.Sleep}, // appended after the record was read
		},
	}
	router := routing.New(1, fabric.DirectoryConfig{
		Remote: func(string, uint32) fabric.Replica { return l }, Unresponsive: func(string) bool { return false },
		Replicas: func(uint32) []string { return []string{"n1"} },
	})
	c := &catalog{router, func() *metadata.Schemas { return nil }, func() feature.Level { return feature.Newest }}
	inv, err := c.Get(t.Context(), l.invocation.ID, true)
	require.NoError(t, err)
	require.Len(t, inv.Journal, 4)
	require.Equal(t, 2, l.pages)
	require.Equal(t, "Command: Input", inv.Journal[0].Type)
	require.Equal(t, "Other/h", inv.Journal[1].InvokedTarget)
	require.Equal(t, "inv_callee", inv.Journal[1].InvokedID, "it is in a later page")
	require.EqualValues(t, 3, inv.Journal[3].Index)
	require.Equal(t, len(l.journal[3].Payload), inv.Journal[3].RawLength)

	inv, err = c.Get(t.Context(), l.invocation.ID, false)
	require.NoError(t, err)
	require.Nil(t, inv.Journal)
	l.invocation.Length = 0
	inv, err = c.Get(t.Context(), l.invocation.ID, true)
	require.NoError(t, err)
	require.NotNil(t, inv.Journal)
}

// TestStateCommandsAreNamedByTheirKeys requires it of all commands that concern one entry of the state.
func TestStateCommandsAreNamedByTheirKeys(t *testing.T) {
	key := []byte("status")
	for kind, m := range map[journal.Type]interface{ MarshalVT() ([]byte, error) }{
		journal.SetState:      &service.SetStateCommandMessage{Key: key},
		journal.ClearState:    &service.ClearStateCommandMessage{Key: key},
		journal.GetLazyState:  &service.GetLazyStateCommandMessage{Key: key},
		journal.GetEagerState: &service.GetEagerStateCommandMessage{Key: key},
	} {
		payload, err := m.MarshalVT()
		require.NoError(t, err)
		d := journalDescriber{calls: map[int]uint32{}, callees: map[uint32]string{}}
		d.add(journal.Entry{Type: kind, Payload: payload})
		require.Equal(t, "status", d.done()[0].Name, kind.String())
	}
}
