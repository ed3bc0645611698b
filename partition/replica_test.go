package partition

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
)

func TestServerIDOfTheReplicaOnANode(t *testing.T) {
	const node = raft.ServerID("n/1")
	members := func(ids ...raft.ServerID) (c raftgroup.Configuration) {
		for _, id := range ids {
			c.Servers = append(c.Servers, raft.Server{ID: id})
		}
		return c
	}
	for name, c := range map[string]struct {
		members raftgroup.Configuration
		live    raft.ServerID // the follower that responds
		stated  raft.ServerID // by the node; "": it does not respond
		want    raft.ServerID
	}{
		"no member, no response":             {members("m/1"), "", "", "n/1"},
		"no member, a first replica":         {members("m/1"), "", "n/1", "n/1"},
		"no member, a later replica":         {members("m/1"), "", "n/1#2", "n/1#2"},
		"no member, another incarnation":     {members("m/1"), "", "n/2#2", "n/1"},
		"a member that responds":             {members("n/1", "m/1"), "n/1", "n/1#1", "n/1"},
		"a member without a response":        {members("n/1", "m/1"), "m/1", "", "n/1"},
		"a member that has a successor":      {members("n/1", "m/1"), "m/1", "n/1#1", "n/1#1"},
		"a member that the node has not yet": {members("n/1#2", "m/1"), "m/1", "n/1#1", "n/1#2"},
		"a member beside its successor":      {members("n/1#1", "n/1"), "n/1#1", "", "n/1#1"},
		"a member of another incarnation":    {members("n/0#5", "m/1"), "n/0#5", "n/1#1", "n/1#1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Status{Members: c.members}
			for _, m := range c.members.Servers {
				s.Followers = append(s.Followers, raftgroup.Follower{Server: m, Live: m.ID == c.live})
			}
			require.Equal(t, c.want, s.ReplicaOn(node, func() (raft.ServerID, bool) { return c.stated, c.stated != "" }))
		})
	}
}
