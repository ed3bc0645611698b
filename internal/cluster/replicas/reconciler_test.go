package replicas

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster/datadir"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/metadata"
	"platform/partition"
	nodepb "platform/proto/node"
)

func TestAReplicaIsRemovedOnProofOnly(t *testing.T) {
	member := raftgroup.Configuration{Index: 10, Servers: []raft.Server{{ID: "a"}, {ID: "self"}}}
	gone := raftgroup.Configuration{Index: 10, Servers: []raft.Server{{ID: "a"}}}
	without, with := []*nodepb.ReplicaMember{{Id: "a"}}, []*nodepb.ReplicaMember{{Id: "a"}, {Id: "self"}}
	for name, c := range map[string]struct {
		own  raftgroup.Configuration
		said *nodepb.ReplicaStatus
		want bool
	}{
		"a newer configuration without it":    {member, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 5, MembersIndex: 11, Members: without}, true},
		"in a newer term":                     {member, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 6, MembersIndex: 11, Members: without}, true},
		"the same configuration, known here":  {gone, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 5, MembersIndex: 10, Members: without}, true},
		"nothing is known here":               {raftgroup.Configuration{}, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 5, MembersIndex: 1, Members: without}, true},
		"a deposed leader":                    {member, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 4, MembersIndex: 11, Members: without}, false},
		"a configuration from before it came": {member, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 5, MembersIndex: 9, Members: without}, false},
		"an older one than the removal":       {gone, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 5, MembersIndex: 9, Members: without}, false},
		"a configuration that has it":         {member, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 5, MembersIndex: 11, Members: with}, false},
		"it is about to be added again":       {member, &nodepb.ReplicaStatus{Partition: 3, Leading: true, Term: 5, MembersIndex: 11, Members: without, Newest: []string{"a", "self"}}, false},
		"a follower":                          {member, &nodepb.ReplicaStatus{Partition: 3, Term: 5, MembersIndex: 11, Members: without}, false},
		"the leader of another partition":     {member, &nodepb.ReplicaStatus{Partition: 4, Leading: true, Term: 5, MembersIndex: 11, Members: without}, false},
	} {
		t.Run(name, func(t *testing.T) {
			own := partition.Status{ID: 3, Term: 5, Members: c.own}
			require.Equal(t, c.want, removed(own, c.said, "self"))
		})
	}
}

func TestNodeThatCreatesTheFirstReplica(t *testing.T) {
	founder := datadir.Identity{Founder: true}
	recovered := datadir.Identity{Founder: true, RecoveredAt: time.Unix(1, 0)}
	fresh := hardstate.Record{}
	for name, c := range map[string]struct {
		id      datadir.Identity
		record  hardstate.Record
		version uint64
		alone   bool
		want    bool
	}{
		"the founder":                               {founder, fresh, 1, false, true},
		"a node that is alone":                      {datadir.Identity{}, fresh, 0, true, true},
		"another node":                              {datadir.Identity{}, fresh, 1, false, false},
		"the partition was elsewhere":               {founder, fresh, 2, true, false},
		"the cluster was recovered":                 {recovered, fresh, 1, true, false},
		"the founder's replica was rebuilt":         {founder, hardstate.Record{Replica: 1}, 1, false, false},
		"a rebuilt replica is alone":                {datadir.Identity{}, hardstate.Record{Replica: 2, Term: 5}, 0, true, false},
		"a removal was interrupted":                 {founder, hardstate.Record{Replica: 1, Removing: true}, 1, true, false},
		"it goes on with what it promised as first": {founder, hardstate.Record{Term: 4}, 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, mayCreateGroup(c.id, c.record, metadata.Partition{Version: c.version}, c.alone))
		})
	}
}

func TestMembersAreOutdatedOnceAReplicaIsRebuilt(t *testing.T) {
	layout := &metadata.Layout{Partitions: []metadata.Partition{{ID: 0, Version: 5}}}
	moved, tick, asked := make(chan struct{}), make(chan time.Time), make(chan string)
	done := make(chan struct{})
	go func() {
		defer close(done)
		awaitOutdated(t.Context(), func() (*metadata.Layout, <-chan struct{}) { return layout, moved }, tick, layout.Partitions[0],
			func(*metadata.Layout) bool {
				return rebuilt([]raft.Server{{ID: "n1/a"}, {ID: "n2/b#1"}}, []raft.Server{{ID: "n1/a"}, {ID: raft.ServerID(<-asked)}})
			})
	}()
	for _, id := range []string{"n2/b#1", "n2/b"} { // nothing new, or the node did not respond
		tick <- time.Time{}
		asked <- id
	}
	tick <- time.Time{}
	select {
	case <-done:
		require.Fail(t, "the members are not outdated")
	case asked <- "n2/b#2":
	}
	<-done
}
