package cluster

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
)

func TestLossesSurvived(t *testing.T) {
	for name, test := range map[string]struct {
		change func(st *partition.Status, dead map[raft.ServerID]bool)
		want   int
	}{
		"three replicas": {func(*partition.Status, map[raft.ServerID]bool) {}, 1},
		"a node is dead": {func(_ *partition.Status, dead map[raft.ServerID]bool) { dead["n3/1"] = true }, 0},
		"a replica has no vote yet": {func(st *partition.Status, _ map[raft.ServerID]bool) {
			st.Members.Servers[2].Suffrage = raft.Nonvoter
		}, 0},
		"a replica is behind": {func(st *partition.Status, _ map[raft.ServerID]bool) { st.Followers[1].CaughtUp = false }, 0},
		"a replica moves": {func(st *partition.Status, _ map[raft.ServerID]bool) {
			st.Members.Servers = append(st.Members.Servers, raft.Server{ID: "n4/1", Suffrage: raft.Nonvoter})
		}, 1},
		"this node does not lead": {func(st *partition.Status, _ map[raft.ServerID]bool) { *st = partition.Status{ID: 7} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			layout := &metadata.Layout{Cluster: metadata.Cluster{Replication: 3}, Partitions: []metadata.Partition{{ID: 0, Replicas: []uint32{1, 2, 3}}}}
			var servers []raft.Server
			for i, n := range []string{"n1", "n2", "n3"} {
				layout.Nodes = append(layout.Nodes, metadata.Node{ID: uint32(i + 1), Name: n, Incarnation: "1"})
				servers = append(servers, raft.Server{ID: raft.ServerID(n + "/1")})
			}
			st := partition.Status{
				Members:   raftgroup.Configuration{Servers: append([]raft.Server{}, servers...)},
				Followers: []raftgroup.Follower{{Server: servers[1], CaughtUp: true}, {Server: servers[2], CaughtUp: true}},
			}
			dead := map[raft.ServerID]bool{}
			test.change(&st, dead)
			now, whole := lossesSurvived(layout, servers, map[uint32]partition.Status{st.ID: st}, func(id raft.ServerID) bool { return !dead[id] })
			require.Equal(t, test.want, now)
			require.Equal(t, 1, whole)
		})
	}
}
