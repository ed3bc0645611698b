package raftgroup

import (
	"time"

	"github.com/hashicorp/raft"
)

// withholdPause is how often a withheld append checks whether it may proceed.
const withholdPause = 5 * time.Millisecond

// judgeByLog lets Raft decide by term and log about a candidate that is a nonvoter in this
// replica's configuration. Raft would reject such a candidate, although its own, newer
// configuration may give it a vote. See ELECTIONS.md, "Promotions and demotions".
func (p *port) judgeByLog(command any) {
	var header *raft.RPCHeader
	switch c := command.(type) {
	case *raft.RequestVoteRequest:
		header = &c.RPCHeader
	case *raft.RequestPreVoteRequest:
		header = &c.RPCHeader
	default:
		return
	}
	r := p.outgoing.Load().raft.Load()
	if r == nil || len(header.ID) == 0 {
		return
	}
	members := r.GetConfiguration().Configuration().Servers
	if s, member := findServer(members, raft.ServerID(header.ID)); !member || s.Suffrage == raft.Voter {
		return
	}
	for _, s := range members {
		if s.Suffrage == raft.Voter {
			header.ID = []byte(s.ID) // Raft uses the ID only for its check
			return
		}
	}
}

// withhold keeps a configuration from a nonvoter until it is committed: it truncates args
// before the configuration, or waits if nothing is left. The append may proceed when it
// returns nil.
func (p *port) withhold(id raft.ServerID, args *raft.AppendEntriesRequest) error {
	r := p.outgoing.Load().raft.Load()
	if r == nil {
		return nil
	}
	for i, e := range args.Entries {
		if e.Type != raft.LogConfiguration || !withheldFrom(r, id, e.Index) {
			continue
		}
		if i > 0 {
			args.Entries = args.Entries[:i]
			return nil
		}
		if err := p.awaitCommit(r, id, e.Index, args.Term); err != nil {
			return err
		}
	}
	return nil
}

func (p *port) awaitCommit(r *raft.Raft, id raft.ServerID, index, term uint64) error {
	p.withheld.Add(1)
	defer p.withheld.Add(-1)
	for withheldFrom(r, id, index) {
		if out := p.outgoing.Load(); out.ctx.Err() != nil || !out.leads(term) {
			return errDeposed
		}
		p.pause(withholdPause)
	}
	return nil
}

// withheldFrom reports whether the configuration at index is uncommitted and its commitment
// does not depend on id.
func withheldFrom(r *raft.Raft, id raft.ServerID, index uint64) bool {
	if index <= r.CommitIndex() {
		return false
	}
	s, _ := findServer(r.GetConfiguration().Configuration().Servers, id)
	return s.ID == "" || s.Suffrage != raft.Voter
}
