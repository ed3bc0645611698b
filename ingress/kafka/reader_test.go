package kafka

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
)

// A reader that could not decrypt its secrets restarts once it can, although no record has changed.
func TestReaderDiffersOnceItsSecretsAreReadable(t *testing.T) {
	unreadable := errors.New("no key")
	sub, cluster := subscription.Subscription{ID: "s", Version: 1}, subscription.Cluster{Name: "c", Version: 1}
	lockedSub, lockedCluster := sub, cluster
	lockedSub.Unreadable, lockedCluster.Unreadable = unreadable, unreadable
	r := &reader{sub: sub, cluster: cluster, known: true}
	require.False(t, r.differs(&sub, &cluster, true))
	require.True(t, r.differs(&lockedSub, &cluster, true))
	require.True(t, r.differs(&sub, &lockedCluster, true))
	r = &reader{sub: lockedSub, cluster: lockedCluster, known: true}
	require.False(t, r.differs(&lockedSub, &lockedCluster, true))
	require.True(t, r.differs(&sub, &cluster, true))
}

func TestTheLagBehindAnUnreachableBrokerIsUnknown(t *testing.T) {
	lag := func(end int64, state subscription.State, reason subscription.Reason) int64 {
		s := &stream{status: subscription.PartitionStatus{State: state, Reason: reason, Position: 4, End: end}}
		st := s.snapshot()
		return st.Lag()
	}
	require.Zero(t, lag(4, subscription.Running, ""))
	require.EqualValues(t, -1, lag(4, subscription.Failed, subscription.BrokerUnreachable), "records may have been produced since then")
	require.EqualValues(t, 3, lag(7, subscription.Failed, subscription.BrokerUnreachable), "at least")
	require.Zero(t, lag(4, subscription.Failed, subscription.NotAuthorized))
}
