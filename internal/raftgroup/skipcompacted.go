package raftgroup

import "github.com/hashicorp/raft"

// skipCompacted removes from an append what this replica has compacted. Raft would reject
// the append, since it cannot compare what precedes the entries, and the leader would go
// back to the beginning of its log, where it is rejected as well. This happens if the
// response to an append was lost and the replica has compacted its log since, or has
// received the entries right after a snapshot, with which Raft deletes the whole log.
//
// Compacted entries are committed, so that they are the leader's.
func (p *port) skipCompacted(command any) {
	a, ok := command.(*raft.AppendEntriesRequest)
	if !ok || a.PrevLogEntry == 0 && len(a.Entries) == 0 {
		return
	}
	first, err := p.group.storage.FirstIndex()
	if err != nil || a.PrevLogEntry >= first {
		return
	}
	a.Entries = a.Entries[min(first-1-a.PrevLogEntry, uint64(len(a.Entries))):]
	a.PrevLogEntry, a.PrevLogTerm = 0, 0 // nothing to compare
	// Without the comparison, Raft must not commit what follows the entries.
	a.LeaderCommitIndex = min(a.LeaderCommitIndex, first-1+uint64(len(a.Entries)))
}
