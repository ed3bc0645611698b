package metadata

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/metadata/placement"
)

// drawn parses a view: members with their state, then the group's servers. A member is its
// number, then ! if it is lost, ? if it is suspect, d if it is draining and r if it was
// removed. A server is its number, then v for a voter, and b for another incarnation.
func drawn(members, servers string) groupView {
	v := groupView{local: "n1/a", liveness: map[uint32]placement.Liveness{}}
	for _, word := range strings.Fields(members) {
		id := uint32(word[0] - '0')
		n := Node{Name: fmt.Sprint("n", id), ID: id, Incarnation: "a", FabricAddress: fmt.Sprintf("http://host%d:1/", id)}
		n.Draining, n.Removed = strings.Contains(word, "d"), strings.Contains(word, "r")
		v.liveness[id] = placement.Alive
		if strings.Contains(word, "!") {
			v.liveness[id] = placement.Lost
		} else if strings.Contains(word, "?") {
			v.liveness[id] = placement.Suspect
		}
		v.records = append(v.records, n)
		if !n.Removed {
			v.members = append(v.members, n)
		}
	}
	for _, word := range strings.Fields(servers) {
		s := raft.Server{ID: raft.ServerID("n" + word[:1] + "/a"), Address: raft.ServerAddress("host" + word[:1] + ":1"), Suffrage: raft.Nonvoter}
		if strings.Contains(word, "v") {
			s.Suffrage = raft.Voter
		}
		if strings.Contains(word, "b") {
			s.ID = raft.ServerID("n" + word[:1] + "/b")
		}
		if strings.Contains(word, "m") {
			s.Address = "moved:1"
		}
		v.servers = append(v.servers, s)
	}
	return v
}

func TestGroupChanges(t *testing.T) {
	for name, tc := range map[string]struct{ members, servers, want string }{
		"alone":                               {"1", "1v", ""},
		"no node is registered yet":           {"", "1v 2v 3v", ""},
		"the second":                          {"1 2", "1v", "add n2/a"},
		"the second has come":                 {"1 2", "1v 2", "give vote n2/a"},
		"one of several to promote":           {"1 2 3", "1v 2 3", "give vote n2/a, give vote n3/a"},
		"three of four":                       {"1 2 3 4", "1v 2v 3v 4", ""},
		"five of five":                        {"1 2 3 4 5", "1v 2v 3v 4 5", "give vote n4/a, give vote n5/a"},
		"five of six":                         {"1 2 3 4 5 6", "1v 2v 3v 4v 5v 6", ""},
		"a lost node is not added":            {"1 2!", "1v", ""},
		"a suspect is not promoted":           {"1 2?", "1v 2", ""},
		"a suspect keeps its vote":            {"1 2? 3 4", "1v 2v 3v 4", ""},
		"a lost one does not":                 {"1 2! 3 4", "1v 2v 3v 4", "give vote n4/a"},
		"once another one has it":             {"1 2! 3 4", "1v 2v 3v 4v", "take vote n2/a"},
		"a lost one keeps it without a spare": {"1 2! 3", "1v 2v 3v", ""},
		"four are too many":                   {"1 2 3 4", "1v 2v 3v 4v", "take vote n4/a"},
		"a suspect goes first":                {"1 2? 3 4", "1v 2v 3v 4v", "take vote n2/a"},
		"draining":                            {"1 2d 3 4", "1v 2v 3v 4", "give vote n4/a"},
		"draining, without a spare":           {"1 2d 3", "1v 2v 3v", "take vote n2/a"},
		"the leader is draining":              {"1d 2 3", "1v 2v 3v", "hand leadership to n2/a"},
		"all nodes are draining":              {"1d 2d", "1v 2v", ""},
		"removed":                             {"1 2r 3", "1v 2v 3v", "remove n2/a"},
		"removed without a vote":              {"1 2r", "1v 2", "remove n2/a"},
		"the leader is removed":               {"1r 2d 3", "1v 2v 3v", "hand leadership to n3/a"},
		"the last but one with a vote":        {"1 2r", "1v 2v", "remove n2/a"},
		"too few would be left":               {"1 2r 3!", "1v 2v 3v", ""},
		"another incarnation":                 {"1 2 3", "1v 2bv 3v", "remove n2/b"},
		"and then the new one":                {"1 2 3", "1v 3v", "add n2/a"},
		"an unknown name":                     {"1", "1v 9bv", ""},
		"another address":                     {"1 2", "1v 2m", "add n2/a"},
		"another address of a voter":          {"1 2", "1v 2vm", "change address n2/a"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range drawn(tc.members, tc.servers).changes() {
				got = append(got, fmt.Sprintf("%s %s", c.kind, c.server.ID))
			}
			require.Equal(t, tc.want, strings.Join(got, ", "))
		})
	}
}

func TestAddressesOfReplicas(t *testing.T) {
	for fabric, want := range map[string]string{
		"http://n1:5122/": "n1:5122", "http://n1:5122": "n1:5122", "n1:5122": "n1:5122", "http://[::1]:5122/": "[::1]:5122", "": "",
	} {
		require.EqualValues(t, want, Node{FabricAddress: fabric}.RaftAddress())
	}
}

func TestPlacementInput(t *testing.T) {
	a, gone := Node{Name: "a", ID: 1, Incarnation: "x"}, Node{Name: "b", ID: 2, Incarnation: "x", Removed: true}
	l := &Layout{
		Cluster: Cluster{Replication: 3}, Nodes: []Node{a},
		Partitions: []Partition{{ID: 0, Replicas: []uint32{1, 2}}, {ID: 1, Replicas: []uint32{1}}},
	}
	got := placementInput(l, []Node{a, gone}, map[uint32]placement.Liveness{1: placement.Alive}, map[uint32]Configuration{
		0: {Leader: "b/x", Servers: []raft.Server{{ID: "a/x"}, {ID: "b/x"}, {ID: "a/older"}, {ID: "a/x", Suffrage: raft.Nonvoter}}},
	})
	require.Equal(t, placement.Cluster{
		Nodes: []placement.Node{{ID: 1, Liveness: placement.Alive}}, Replication: 3, MaxMoves: maxMoves,
		Partitions: []placement.Partition{
			{ID: 0, Replicas: []uint32{1, 2}, Leader: 2, Voters: []uint32{1, 2, 0}, Others: []uint32{1}},
			{ID: 1, Replicas: []uint32{1}},
		},
	}, got)
	require.True(t, got.Moving())
}
