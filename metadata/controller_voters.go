package metadata

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"platform/metadata/placement"
)

// Voters of the metadata group: more make each change slower, fewer survive fewer failures.
const (
	fewVoters   = 3
	manyVoters  = 5 // from manyMembers nodes on
	manyMembers = 5
)

// changeKind is a kind of change of the metadata group.
type changeKind string

const (
	add       changeKind = "add"            // as a nonvoter
	readdress changeKind = "change address" // of a voter
	promote   changeKind = "give vote"      // once it has caught up
	demote    changeKind = "take vote"
	remove    changeKind = "remove"
	handOver  changeKind = "hand leadership to" // because the leader is leaving
)

// groupChange is one change of the metadata group.
type groupChange struct {
	kind   changeKind
	server raft.Server
	node   Node // of a server to promote
}

// groupView is the input for the changes.
type groupView struct {
	local    raft.ServerID // the leader
	servers  []raft.Server
	records  []Node // including removed ones
	members  []Node
	liveness map[uint32]placement.Liveness
}

// changes returns the due changes. One of them is made before they are computed again: the
// first or, of several servers to promote, one that has caught up.
func (v groupView) changes() []groupChange {
	if change, due := v.leaving(); due {
		return []groupChange{change}
	}
	if change, due := v.coming(); due {
		return []groupChange{change}
	}
	chosen := v.chosen()
	if len(chosen) == 0 {
		return nil
	}
	var promotions []groupChange
	for _, m := range chosen {
		if m.server.Suffrage != raft.Voter {
			promotions = append(promotions, groupChange{promote, m.server, m.node})
		}
	}
	if len(promotions) > 0 {
		return promotions
	}
	for _, s := range v.servers {
		if s.Suffrage == raft.Voter && v.member(s.ID) != nil && !slices.ContainsFunc(chosen, func(m member) bool { return m.server.ID == s.ID }) {
			if change, can := v.takeVote(demote, s); can {
				return []groupChange{change}
			}
		}
	}
	return nil
}

// leaving returns a server to remove: of a removed node, or of an incarnation that lost its
// data. Servers with names that were never registered are about to be.
func (v groupView) leaving() (groupChange, bool) {
	for _, s := range v.servers {
		if v.member(s.ID) != nil || !v.named(s.ID) {
			continue
		}
		if s.Suffrage != raft.Voter {
			return groupChange{kind: remove, server: s}, true
		}
		if change, can := v.takeVote(remove, s); can {
			return change, true
		}
	}
	return groupChange{}, false
}

// takeVote demotes or removes a voter if a majority of the others is alive. The leader
// transfers leadership first.
func (v groupView) takeVote(kind changeKind, s raft.Server) (groupChange, bool) {
	var rest []raft.Server
	for _, other := range v.servers {
		if other.Suffrage == raft.Voter && other.ID != s.ID {
			rest = append(rest, other)
		}
	}
	alive := slices.DeleteFunc(slices.Clone(rest), func(other raft.Server) bool { return !v.alive(other.ID) })
	if len(alive) <= len(rest)/2 {
		return groupChange{}, false
	}
	if s.ID != v.local {
		return groupChange{kind: kind, server: s}, true
	}
	target := slices.IndexFunc(alive, func(other raft.Server) bool { return !v.member(other.ID).Draining })
	return groupChange{kind: handOver, server: alive[max(target, 0)]}, true
}

// coming returns a member to add, or one whose address has changed.
func (v groupView) coming() (groupChange, bool) {
	for _, n := range v.members {
		want := raft.Server{Suffrage: raft.Nonvoter, ID: n.ServerID(), Address: n.RaftAddress()}
		at := slices.IndexFunc(v.servers, func(s raft.Server) bool { return s.ID == want.ID })
		switch {
		case want.Address == "" || v.liveness[n.ID] == placement.Lost:
		case at < 0, v.servers[at].Address != want.Address && v.servers[at].Suffrage != raft.Voter:
			return groupChange{kind: add, server: want}, true
		case v.servers[at].Address != want.Address:
			want.Suffrage = raft.Voter
			return groupChange{kind: readdress, server: want}, true
		}
	}
	return groupChange{}, false
}

// member is a node with its server.
type member struct {
	node   Node
	server raft.Server
	rank   int
}

// chosen returns the members that should vote: first healthy voters, then other healthy
// members, then lost voters.
func (v groupView) chosen() []member {
	staying := 0
	var list []member
	for _, n := range v.members {
		if n.Draining {
			continue
		}
		staying++
		at := slices.IndexFunc(v.servers, func(s raft.Server) bool { return s.ID == n.ServerID() })
		if at < 0 {
			continue
		}
		m := member{node: n, server: v.servers[at]}
		lost := v.liveness[n.ID] == placement.Lost && m.server.ID != v.local
		switch voter := m.server.Suffrage == raft.Voter; {
		case m.server.ID == v.local:
			m.rank = 0
		case voter && v.alive(m.server.ID):
			m.rank = 1
		case voter && !lost:
			m.rank = 2
		case !voter && v.alive(m.server.ID):
			m.rank = 3
		case voter:
			m.rank = 4
		default:
			continue
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b member) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.node.ID, b.node.ID)) })
	return list[:min(Voters(staying), len(list))]
}

// Voters returns the number of voters on the metadata of a cluster, given the number of
// nodes that are not being drained.
func Voters(nodes int) int {
	if nodes >= manyMembers {
		return manyVoters
	}
	return min(fewVoters, nodes)
}

// SpareVoters returns how many of the live voters of a group can be lost without losing the
// majority.
func SpareVoters(voters, alive int) int { return max(0, alive-voters/2-1) }

// LossesSurvived returns how many nodes, whichever they are, can be lost without a
// partition or the metadata losing its majority, once every partition has its replicas.
// nodes is the number of nodes that are not being drained.
func LossesSurvived(nodes, replication int) int {
	voters, replicas := Voters(nodes), min(nodes, replication)
	return min(SpareVoters(voters, voters), SpareVoters(replicas, replicas))
}

// member returns the node that a server belongs to, nil if it is no longer a member.
func (v groupView) member(id raft.ServerID) *Node {
	at := slices.IndexFunc(v.members, func(n Node) bool { return n.ServerID() == id })
	if at < 0 {
		return nil
	}
	return &v.members[at]
}

// named reports whether the node of a server is on record, even if removed or with another
// incarnation.
func (v groupView) named(id raft.ServerID) bool {
	at := strings.LastIndexByte(string(id), '/')
	return at >= 0 && slices.ContainsFunc(v.records, func(n Node) bool { return n.Name == string(id)[:at] })
}

func (v groupView) alive(id raft.ServerID) bool {
	n := v.member(id)
	return id == v.local || n != nil && v.liveness[n.ID] == placement.Alive
}
