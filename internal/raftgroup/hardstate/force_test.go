package hardstate

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

func TestForcedConfigurationNeedsUsableData(t *testing.T) {
	servers := []raft.Server{{ID: "self#1", Address: "127.0.0.1:1"}}
	_, err := ForceConfiguration(checkedStorage(t, 0, 0), nil, logstore.Position{}, servers)
	require.ErrorIs(t, err, errEmpty)
	s := checkedStorage(t, 1, 9)
	_, err = ForceConfiguration(s, nil, logstore.Position{Index: 10, Term: 3}, servers)
	require.ErrorIs(t, err, ErrQuarantined, "the state is beyond the log")
	require.NoError(t, s.Set(logstore.KeyQuarantine, []byte("damaged")))
	_, err = ForceConfiguration(s, nil, logstore.Position{}, servers)
	require.ErrorIs(t, err, ErrQuarantined)
	logstoretest.RequireBounds(t, s, 1, 9)
}
