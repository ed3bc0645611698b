package raftgroup

import (
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// change is one step from a configuration to another.
type change struct {
	op     changeOp
	server raft.Server
	why    string // nothing can be changed yet, if op is changeNone
}

type changeOp int

const (
	changeNone        changeOp = iota
	changeAddVoter             // adds a vote, or gives a voter another address
	changeAddNonvoter          // adds a replica without a vote, or gives one another address
	changeDemote
	changeRemove
	changeLeader // hand leadership over
)

func (o changeOp) String() string {
	return [...]string{"none", "add voter", "add non-voter", "demote", "remove", "transfer leadership"}[o]
}

// plan is what nextChange decides on.
type plan struct {
	local            raft.ServerID
	current, desired []raft.Server
	followers        []Follower
}

// nextChange is the next change on the way from the current to the desired members.
// local leads, and knows of the followers what they told it.
func nextChange(local raft.ServerID, current, desired []raft.Server, followers []Follower) change {
	p := plan{local, current, desired, followers}
	for _, step := range []func() (change, bool){p.readdress, p.replaceLost, p.removeNonvoter, p.add, p.promote, p.removeVoter, p.handOver} {
		if c, found := step(); found {
			return c
		}
	}
	return change{}
}

// readdress finds a member that is reached elsewhere now.
func (p *plan) readdress() (change, bool) {
	for _, s := range p.current {
		d, ok := findServer(p.desired, s.ID)
		if !ok || d.Address == s.Address || p.holder(d.Address) != "" {
			continue
		}
		op := changeAddVoter
		if s.Suffrage != raft.Voter {
			op = changeAddNonvoter
		}
		return change{op: op, server: raft.Server{ID: s.ID, Address: d.Address, Suffrage: s.Suffrage}}, true
	}
	return change{}, false
}

// holder is the member whose address addr is; a group has only one for each.
func (p *plan) holder(addr raft.ServerAddress) raft.ServerID {
	for _, s := range p.current {
		if s.Address == addr {
			return s.ID
		}
	}
	return ""
}

// replaceLost finds a surplus member whose address a desired one has now: the node
// lost its data and came back as another replica, so that the old one is gone for
// good and keeps nobody's place.
func (p *plan) replaceLost() (change, bool) {
	for _, s := range p.current {
		if _, ok := findServer(p.desired, s.ID); ok || s.ID == p.local {
			continue
		}
		taken := slices.ContainsFunc(p.desired, func(d raft.Server) bool { return d.Address == s.Address })
		if !taken {
			continue
		}
		if s.Suffrage == raft.Voter && !p.safeWithout(s.ID) {
			return change{why: fmt.Sprintf("%s cannot be removed: the others would be no majority", s.ID)}, true
		}
		return change{op: changeRemove, server: s}, true
	}
	return change{}, false
}

// removeNonvoter finds a surplus member without a vote.
func (p *plan) removeNonvoter() (change, bool) {
	for _, s := range p.current {
		if _, ok := findServer(p.desired, s.ID); !ok && s.Suffrage != raft.Voter {
			return change{op: changeRemove, server: s}, true
		}
	}
	return change{}, false
}

// add finds a desired member that is missing.
func (p *plan) add() (change, bool) {
	for _, d := range p.desired {
		if _, ok := findServer(p.current, d.ID); !ok {
			d.Suffrage = raft.Nonvoter
			return change{op: changeAddNonvoter, server: d}, true
		}
	}
	return change{}, false
}

// promote finds a member that is to have a vote and has caught up. Nothing else is
// done before all have theirs, so that there are never fewer copies than desired.
func (p *plan) promote() (change, bool) {
	waiting := ""
	for _, d := range p.desired {
		s, _ := findServer(p.current, d.ID)
		if d.Suffrage != raft.Voter || s.Suffrage == raft.Voter {
			continue
		}
		f := p.follower(d.ID)
		if f.CaughtUp {
			return change{op: changeAddVoter, server: d}, true
		}
		waiting = fmt.Sprintf("%s does not answer", d.ID)
		if f.Live {
			waiting = fmt.Sprintf("%s misses %d entries", d.ID, f.Lag)
		}
	}
	return change{why: waiting}, waiting != ""
}

// removeVoter finds another voter that is to have no vote, those that are gone
// first.
func (p *plan) removeVoter() (change, bool) {
	var found, blocked change
	for _, s := range p.current {
		d, stays := findServer(p.desired, s.ID)
		if s.Suffrage != raft.Voter || s.ID == p.local || stays && d.Suffrage == raft.Voter {
			continue
		}
		if !p.safeWithout(s.ID) {
			blocked.why = fmt.Sprintf("%s cannot be removed: the others would be no majority", s.ID)
			continue
		}
		op := changeRemove
		if stays {
			op = changeDemote
		}
		if found.op == changeNone || !p.follower(s.ID).Live {
			found = change{op: op, server: s}
		}
	}
	if found.op != changeNone {
		return found, true
	}
	return blocked, blocked.why != ""
}

// handOver finds a successor when the leader itself is to have no vote.
func (p *plan) handOver() (change, bool) {
	d, stays := findServer(p.desired, p.local)
	if stays && d.Suffrage == raft.Voter {
		return change{}, false
	}
	for _, s := range p.desired {
		if s.Suffrage == raft.Voter && p.follower(s.ID).CaughtUp {
			return change{op: changeLeader, server: s}, true
		}
	}
	return change{why: "no other replica can take leadership over"}, true
}

// safeWithout reports whether, once id has no vote, the voters that are there and
// caught up are a majority.
func (p *plan) safeWithout(id raft.ServerID) bool {
	voters, good := 0, 0
	for _, s := range p.current {
		if s.Suffrage != raft.Voter || s.ID == id {
			continue
		}
		voters++
		if s.ID == p.local || p.follower(s.ID).CaughtUp {
			good++
		}
	}
	return good > voters/2
}

func (p *plan) follower(id raft.ServerID) Follower {
	for _, f := range p.followers {
		if f.ID == id {
			return f
		}
	}
	return Follower{}
}
