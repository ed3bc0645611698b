package raftgroup

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/hardstate"
)

func TestForcedConfigurationContinuesFromTheLastReplica(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		t.Run(fmt.Sprint("snapshot ", snapshot), func(t *testing.T) {
			dir := t.TempDir()
			n := startNode(t, dir, "")
			j := memJournal(t)
			cfg := n.config(1, j, n.voter())
			cfg.Profile.TrailingLogs = 3
			g, err := Open(cfg)
			require.NoError(t, err)
			waitLeader(t, g)
			proposeMany(t, g, 1, 20)
			if snapshot {
				require.NoError(t, g.Snapshot(t.Context()))
			}
			// The others are gone before they have agreed on the last entries.
			require.NoError(t, g.AddNonvoter(t.Context(), "gone", "127.0.0.1:1"))
			end, err := g.LastPosition()
			require.NoError(t, err)
			require.NoError(t, g.Shutdown(t.Context()))

			hard, err := hardstate.Open(filepath.Join(dir, "HARDSTATE"), "first", nil, nil)
			require.NoError(t, err)
			record, err := hard.Group(1)
			require.NoError(t, err)
			require.NoError(t, record.Renumber())
			require.EqualValues(t, 1, record.Record().Replica)
			self := raft.Server{Suffrage: raft.Voter, ID: "self#1", Address: n.address()}
			at, err := hardstate.ForceConfiguration(cfg.Storage, record, j.Applied(), []raft.Server{self})
			require.NoError(t, err)
			require.Equal(t, Position{Index: end.Index + 1, Term: end.Term + 1}, at)
			require.Equal(t, at, record.Record().Last)
			require.Equal(t, at.Term, record.Record().Term)
			require.NoError(t, hard.Close())
			require.NoError(t, hardstate.Rename(filepath.Join(dir, "HARDSTATE"), "second"))
			_, err = hardstate.Open(filepath.Join(dir, "HARDSTATE"), "first", nil, nil)
			require.ErrorIs(t, err, hardstate.ErrForeign)
			hard, err = hardstate.Open(filepath.Join(dir, "HARDSTATE"), "second", nil, nil)
			require.NoError(t, err)
			defer hard.Close()
			record, err = hard.Group(1)
			require.NoError(t, err)
			require.EqualValues(t, 1, record.Record().Replica)

			cfg.LocalID, cfg.Voters, cfg.HardState = self.ID, nil, record
			g, err = Open(cfg)
			require.NoError(t, err)
			waitLeader(t, g)
			require.NoError(t, g.Barrier(t.Context()))
			propose(t, g, "command 21")
			requireCommands(t, j, 21)
			require.Equal(t, []raft.Server{self}, g.Configuration().Servers)
			require.NoError(t, g.Shutdown(t.Context()))
			n.stop()
		})
	}
}
