package raftgroup

import (
	"fmt"

	"platform/internal/raftgroup/hardstate"
)

// Recovered reports whether hardstate.ForceConfiguration or Loss.Accept has been applied to
// this replica since the last EndRecovery: it may have lost entries whose effects others know of.
func (g *Group) Recovered() bool { return hardstate.Recovered(g.storage) }

// EndRecovery durably resets Recovered.
func (g *Group) EndRecovery() error {
	if err := hardstate.EndRecovery(g.storage); err != nil {
		return fmt.Errorf("end recovery of %s: %w", g.cfg.Name, err)
	}
	return nil
}

// LastPosition returns the end of the replica's log. Of the replicas of a group that has
// lost its majority, the one with the highest term, then the highest index, has everything
// that any of them has acknowledged.
func (g *Group) LastPosition() (Position, error) { return hardstate.LastPosition(g.storage) }
