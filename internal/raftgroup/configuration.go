package raftgroup

import (
	"slices"

	"github.com/hashicorp/raft"
)

// Configuration is the membership of a group as of one entry of its log.
type Configuration struct {
	Index   uint64 // 0 while the replica knows none
	Servers []raft.Server
}

// Configuration returns the newest configuration that this replica knows to be committed. A
// removed replica may not know about its removal; only the leader's result is certain.
func (g *Group) Configuration() Configuration {
	f := g.fsm
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.configs) == 0 {
		return Configuration{}
	}
	c := f.configs[len(f.configs)-1]
	return Configuration{Index: c.index, Servers: slices.Clone(c.config.Servers)}
}

// Find returns the member id.
func (c Configuration) Find(id raft.ServerID) (raft.Server, bool) { return findServer(c.Servers, id) }

func findServer(servers []raft.Server, id raft.ServerID) (raft.Server, bool) {
	i := slices.IndexFunc(servers, func(s raft.Server) bool { return s.ID == id })
	if i < 0 {
		return raft.Server{}, false
	}
	return servers[i], true
}
