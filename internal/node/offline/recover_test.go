package offline

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster/datadir"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// member makes the data directory of node n1 of a cluster of two, with a replica of each
// partition, which change can damage.
func member(t *testing.T, partitions uint32, change func(logs *logstore.DB, hard *hardstate.File)) string {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	in := func(name string) string { return filepath.Join(dir, name) }
	id := datadir.Identity{Cluster: "c", Node: "n1", Incarnation: "01A", Founder: true}
	raw, err := json.Marshal(id)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(in("FORMAT"), []byte("1\n"), 0o600))
	require.NoError(t, os.WriteFile(in("IDENTITY"), raw, 0o600))
	hard, err := hardstate.Open(in(datadir.HardStateFile), id.Incarnation, nil, log)
	require.NoError(t, err)

	self := raft.Server{ID: raft.ServerID(id.ReplicaID()), Address: "127.0.0.1:1"} // never dialed
	transport, err := raftgroup.NewTransport(raftgroup.TransportConfig{ClusterID: "c", NodeID: "n1", Address: self.Address, Logger: log})
	require.NoError(t, err)
	record, err := hard.Group(metadata.GroupID)
	require.NoError(t, err)
	meta, err := metadata.Open(metadata.Config{
		Dir: in(datadir.MetadataDir), LocalID: self.ID, Transport: transport, Voters: []raft.Server{self}, HardState: record, Profile: raftgroup.Test(), Logger: log,
	})
	require.NoError(t, err)
	_, err = meta.Provision(t.Context(), metadata.Cluster{Name: "c", Partitions: partitions})
	require.NoError(t, err)
	for name, incarnation := range map[string]string{"n1": "01A", "n2": "01B"} {
		_, err = meta.RegisterNode(t.Context(), metadata.Node{Name: name, Incarnation: incarnation, FabricAddress: "http://127.0.0.1:1"})
		require.NoError(t, err)
	}
	require.NoError(t, meta.Close())
	require.NoError(t, transport.Close())

	logs, err := logstore.Open(in(datadir.LogDir), logstore.Options{Logger: log})
	require.NoError(t, err)
	former := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{self, {ID: "n2/01B", Address: "127.0.0.1:2"}}})
	for p := range partitions {
		s, err := logs.Storage(partition.GroupID(p))
		require.NoError(t, err)
		require.NoError(t, s.SetUint64([]byte("CurrentTerm"), 3))
		require.NoError(t, s.StoreLog(&raft.Log{Index: 1, Term: 3, Type: raft.LogConfiguration, Data: former}))
		record, err := hard.Group(partition.GroupID(p))
		require.NoError(t, err)
		// What a start with these logs records.
		_, err = hardstate.ForceConfiguration(s, record, logstore.Position{}, []raft.Server{self, {ID: "n2/01B", Address: "127.0.0.1:2"}})
		require.NoError(t, err)
	}
	change(logs, hard)
	require.NoError(t, logs.Close())
	require.NoError(t, hard.Close())
	tables, err := store.Open(in(datadir.StateDir), store.Options{Logger: log})
	require.NoError(t, err)
	require.NoError(t, tables.Close())
	return dir
}

// membersOf returns the last configuration in the log of a partition, and why it is
// quarantined.
func membersOf(t *testing.T, dir string, id uint32) (servers []raft.Server, quarantine string) {
	d := openDir(t, dir, true)
	defer func() { require.NoError(t, d.Close()) }()
	group := partition.GroupID(id)
	_, err := d.Entries(group, 0, 0, 100, func(e Entry) error {
		if len(e.Servers) > 0 {
			servers = e.Servers
		}
		return nil
	})
	require.NoError(t, err)
	return servers, d.group(group).Quarantine
}

// TestRecoveryContinuesWithoutUnusablePartitions recovers a cluster from a node some of whose
// replicas have damage that is only detected during the recovery.
func TestRecoveryContinuesWithoutUnusablePartitions(t *testing.T) {
	dir := member(t, 4, func(logs *logstore.DB, hard *hardstate.File) {
		s, err := logs.Storage(partition.GroupID(1))
		require.NoError(t, err)
		require.NoError(t, s.DeleteRange(2, 2)) // the end of the log is lost
		record, err := hard.Group(partition.GroupID(2))
		require.NoError(t, err)
		require.NoError(t, record.Retire()) // a removal was interrupted
	})
	plan, err := PlanRecovery(dir, true)
	require.NoError(t, err)
	require.Equal(t, []uint32{2}, plan.Lost)
	for range 2 { // it may be repeated
		done, err := RecoverDirectory(dir, true, time.Unix(1, 0))
		require.NoError(t, err)
		require.Equal(t, []uint32{0, 3}, done.Kept)
		require.Equal(t, []uint32{2}, done.Lost)
		require.Len(t, done.Unusable, 1)
		require.Contains(t, done.Unusable[1], "the log ends at entry 1")

		for _, id := range done.Kept {
			servers, quarantine := membersOf(t, dir, id)
			require.Equal(t, []raft.ServerID{raft.ServerID("n1/" + done.Incarnation)}, []raft.ServerID{servers[0].ID})
			require.Len(t, servers, 1)
			require.Empty(t, quarantine)
		}
		_, quarantine := membersOf(t, dir, 1)
		require.Contains(t, quarantine, "the log ends at entry 1")
	}

	d := openDir(t, dir, false)
	loss, err := d.AssessLoss(partition.GroupID(1))
	require.NoError(t, err)
	require.NoError(t, d.AcceptLoss(loss))
	require.NoError(t, d.Close())
	servers, quarantine := membersOf(t, dir, 1)
	require.Len(t, servers, 1)
	require.Empty(t, quarantine)
}

// TestRecoveryWithoutTables recovers a cluster from a node that has lost its tables: the log
// has what they held.
func TestRecoveryWithoutTables(t *testing.T) {
	dir := member(t, 1, func(*logstore.DB, *hardstate.File) {})
	require.NoError(t, os.RemoveAll(filepath.Join(dir, datadir.StateDir)))
	done, err := RecoverDirectory(dir, true, time.Unix(1, 0))
	require.NoError(t, err)
	require.Equal(t, []uint32{0}, done.Kept)
}

// TestRecoveryWithoutHardStates recovers a cluster from a node whose hard-state file is
// damaged, which requires consent.
func TestRecoveryWithoutHardStates(t *testing.T) {
	page := func(path string, page int64, data []byte) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(data, 4096*page)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	for name, test := range map[string]struct {
		damage func(path string)
		lost   bool // as a whole
	}{
		"records":        {damage: func(path string) { page(path, 1, make([]byte, 2*4096)) }},
		"header":         {damage: func(path string) { page(path, 0, []byte("x")) }, lost: true},
		"page of zeros":  {damage: func(path string) { page(path, 0, make([]byte, 4096)) }, lost: true},
		"truncated file": {damage: func(path string) { require.NoError(t, os.Truncate(path, 4096)) }, lost: true},
		"missing file":   {damage: func(path string) { require.NoError(t, os.Remove(path)) }, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := member(t, 2, func(*logstore.DB, *hardstate.File) {})
			test.damage(filepath.Join(dir, datadir.HardStateFile))
			_, err := PlanRecovery(dir, true)
			require.ErrorContains(t, err, "--without-hard-state")
			_, err = RecoverDirectory(dir, true, time.Unix(1, 0))
			require.ErrorContains(t, err, "--without-hard-state")

			plan, err := PlanRecovery(dir, false)
			require.NoError(t, err)
			require.Equal(t, []uint32{0, 1, 2}, plan.Unrecorded)
			require.Equal(t, test.lost, plan.HardStateLost != "")
			done, err := RecoverDirectory(dir, false, time.Unix(1, 0))
			require.NoError(t, err)
			require.Equal(t, []uint32{0, 1}, done.Kept)
			require.Empty(t, done.Unusable)
			aside, err := filepath.Glob(filepath.Join(dir, datadir.HardStateFile+".damaged-*"))
			require.NoError(t, err)
			require.Equal(t, test.lost && name != "missing file", len(aside) > 0)

			hard, err := hardstate.Read(filepath.Join(dir, datadir.HardStateFile))
			require.NoError(t, err)
			require.Equal(t, done.Incarnation, hard.Incarnation)
			for group := range uint32(3) {
				require.Contains(t, hard.Groups, group)
				require.NotZero(t, hard.Groups[group].Term)
			}
			for id := range uint32(2) {
				servers, quarantine := membersOf(t, dir, id)
				require.Equal(t, raft.ServerID("n1/"+done.Incarnation), servers[0].ID)
				require.Len(t, servers, 1)
				require.Empty(t, quarantine)
			}
			again, err := RecoverDirectory(dir, true, time.Unix(2, 0))
			require.NoError(t, err)
			require.Equal(t, []uint32{0, 1}, again.Kept)
		})
	}
}
