package raftgroup

import (
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
)

// deferAbove is the size above which Raft gets an entry of the log without its data. Raft
// reads up to Profile.MaxAppendEntries of them before it sends or applies the first one.
const deferAbove = 16 << 10

// complete returns log with its data.
func (s *groupStorage) complete(log *raft.Log) (*raft.Log, error) {
	if !logstore.Deferred(log) {
		return log, nil
	}
	whole := new(raft.Log)
	if err := s.GetLog(log.Index, whole); err != nil {
		return nil, fmt.Errorf("read entry %d: %w", log.Index, err)
	}
	if whole.Term != log.Term || whole.Type != log.Type {
		return nil, fmt.Errorf("read entry %d: it has term %d and type %s, and had term %d and type %s: %w",
			log.Index, whole.Term, whole.Type, log.Term, log.Type, logstore.ErrCorrupt)
	}
	return whole, nil
}
