package raftgroup

import (
	"errors"
	"slices"

	"github.com/hashicorp/raft"
)

// errGap means that Raft was about to store an entry although it has refused an earlier one.
var errGap = errors.New("an earlier entry was not stored")

// proposalOrder is the data of entries that were proposed and have not been stored, in the order of their proposals. Raft
// refuses an entry during a leadership transfer, and may accept the next one if the transfer fails right then. What follows a
// refused entry must not be stored: the journal of an invocation would lack a step.
type proposalOrder struct {
	proposed []*byte // the first byte of each
}

// add appends an entry that is about to be proposed.
func (o *proposalOrder) add(data []byte) {
	if len(data) > 0 {
		o.proposed = append(o.proposed, &data[0])
	}
}

// undo removes the newest entry, since it was not passed to Raft.
func (o *proposalOrder) undo() {
	if n := len(o.proposed); n > 0 {
		o.proposed = slices.Delete(o.proposed, n-1, n)
	}
}

// store removes entries that are about to be stored. It returns errGap if an earlier one was refused.
// Entries that were not added may be among them.
func (o *proposalOrder) store(logs []*raft.Log) error {
	for _, l := range logs {
		for i, first := range o.proposed {
			if len(l.Data) == 0 || &l.Data[0] != first {
				continue
			}
			if i > 0 {
				return errGap
			}
			o.proposed = slices.Delete(o.proposed, 0, 1) // clears what it no longer has: entries may be large
			break
		}
	}
	return nil
}

// reset forgets refused entries. No entry is in flight.
func (o *proposalOrder) reset() {
	clear(o.proposed)
	o.proposed = o.proposed[:0]
}
