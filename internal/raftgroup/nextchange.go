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
	why    string // the reason for waiting, if op is changeNone
}

type changeOp int

const (
	changeNone        changeOp = iota
	changeAddVoter             // adds a voter, or changes a voter's address
	changeAddNonvoter          // adds a nonvoter, or changes its address
	changeDemote
	changeRemove
	changeLeader // transfer leadership
)

func (o changeOp) String() string {
	return [...]string{"none", "add voter", "add non-voter", "demote", "remove", "transfer leadership"}[o]
}

// plan is the input of nextChange.
type plan struct {
	local            raft.ServerID
	current, desired []raft.Server
	followers        []Follower
}

// nextChange returns the next change from the current to the desired members. local leads;
// followers is what it knows of the others.
func nextChange(local raft.ServerID, current, desired []raft.Server, followers []Follower) change {
	p := plan{local, current, desired, followers}
	for _, step := range []func() (change, bool){p.readdress, p.replaceLost, p.removeNonvoter, p.add, p.promote, p.removeVoter, p.handOver} {
		if c, found := step(); found {
			return c
		}
	}
	return change{}
}

// readdress finds a member whose address has changed.
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

// holder returns the member with address addr; a group has only one for each.
func (p *plan) holder(addr raft.ServerAddress) raft.ServerID {
	for _, s := range p.current {
		if s.Address == addr {
			return s.ID
		}
	}
	return ""
}

// replaceLost finds a surplus member whose address now belongs to a desired one: the node
// lost its data and returned as another replica, so that the old one is permanently lost.
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

// removeNonvoter finds a surplus nonvoter.
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

// promote finds a desired voter that has caught up. Nothing else is done before all have
// their vote, so that there are never fewer copies than desired.
func (p *plan) promote() (change, bool) {
	waiting := ""
	for _, d := range p.desired {
		s, _ := findServer(p.current, d.ID)
		if d.Suffrage != raft.Voter || s.Suffrage == raft.Voter {
			continue
		}
		f := p.follower(d.ID)
		// The leader itself may be a nonvoter: TimeoutNow makes one stand for election.
		if f.CaughtUp || d.ID == p.local {
			return change{op: changeAddVoter, server: d}, true
		}
		waiting = fmt.Sprintf("%s does not respond", d.ID)
		if f.Live {
			waiting = fmt.Sprintf("%s misses %d entries", d.ID, f.Lag)
		}
	}
	return change{why: waiting}, waiting != ""
}

// removeVoter finds a voter that should have no vote, unreachable ones first.
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

// handOver finds a successor if the leader itself should have no vote.
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
	return change{why: "no other replica can take over leadership"}, true
}

// safeWithout reports whether, without the vote of id, the voters that are live and caught
// up are a majority.
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
