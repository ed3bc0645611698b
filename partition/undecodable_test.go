package partition

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
	"platform/partition/codec"
)

// An entry that no replica can decode is committed. Every replica rejects it with its name
// and stays quarantined after a restart; nothing panics and no other group is affected.
func TestUndecodableEntryQuarantinesThePartition(t *testing.T) {
	c := newReplicaSet(t, nil)
	c.hosts[c.leader()].p.group.Propose([]byte{0x08, 0x01, 0xff, 0xff})

	// The last one has no majority from which to learn that the entry is committed.
	stopped := func() (stopped []*host) {
		for _, h := range c.hosts {
			if h.p.group.Err() != nil {
				stopped = append(stopped, h)
			}
		}
		return stopped
	}
	require.Eventually(t, func() bool { return len(stopped()) >= 2 }, time.Minute, time.Millisecond)
	for _, h := range stopped() {
		<-h.p.group.Done()
		err := h.p.group.Err()
		require.ErrorIs(t, err, raftgroup.ErrQuarantined)
		var entry *raftgroup.EntryError
		require.ErrorAs(t, err, &entry)
		require.Equal(t, 4, entry.Size)
		require.NotZero(t, entry.Index)
		require.NotZero(t, entry.Term)
		reason, err := h.logs.Quarantined(GroupID(0))
		require.NoError(t, err)
		require.Contains(t, reason, "cannot be applied")
	}
}

// A replica that cannot read what a newer server wrote works again once that server is
// back.
func TestEntryOfANewerServerDoesNotQuarantine(t *testing.T) {
	for _, cause := range []error{codec.ErrVersion, codec.ErrUnknownCommand} {
		err := entryError(&raftgroup.Entry{Index: 7, Term: 2, Data: []byte("abc")}, cause)
		require.ErrorIs(t, err, raftgroup.ErrQuarantined)
		require.ErrorIs(t, err, raftgroup.ErrNewerFormat)
	}
	require.NotErrorIs(t, entryError(&raftgroup.Entry{Index: 7}, context.Canceled), raftgroup.ErrNewerFormat)
}
