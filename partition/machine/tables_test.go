package machine_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/partition/machine"
	"platform/partition/machine/machinetest"
	"platform/partition/store"
)

// diskTables are the tables of one partition on a disk, in which histories are replayed.
type diskTables struct {
	t   *rapid.T
	fs  vfs.FS
	db  *store.DB
	p   *store.Partition
	txn *store.Txn
}

func (d *diskTables) open() {
	var err error
	d.db, err = store.Open("tables", store.Options{FS: d.fs, Logger: slog.New(slog.DiscardHandler), RecordCacheBytes: 4 << 10})
	require.NoError(d.t, err)
	d.p, err = d.db.Partition(0)
	require.NoError(d.t, err)
	d.txn = d.p.Begin()
}

// commit commits the entries up to index, and opens the tables again if reopen is set.
func (d *diskTables) commit(index uint64, reopen bool) {
	require.NoError(d.t, d.txn.Commit(index, 1))
	if !reopen {
		d.txn = d.p.Begin()
		return
	}
	wait, err := d.db.Flush()
	require.NoError(d.t, err)
	require.NoError(d.t, wait(context.Background()))
	require.NoError(d.t, d.db.Close())
	d.open()
}

// TestTablesOnDiskAgreeWithThoseInMemory replays histories in transactions of any size.
func TestTablesOnDiskAgreeWithThoseInMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, 2, true)
		h.scoped = rapid.SampledFrom([]int{30, 90}).Draw(t, "scoped")
		h.run(60)
		for p, log := range h.logs {
			d := &diskTables{t: t, fs: vfs.NewMem()}
			d.open()
			d.txn.Meta().Epoch, d.txn.Meta().Clock = 1, 1000 // as newWorld does
			m := machine.New(machine.Shards{Self: uint32(p), Count: 2})
			m.Tighten()
			for i, l := range log {
				outcome, effects, err := m.Apply(d.txn, l.header, l.command, nil)
				require.NoError(t, err)
				require.Equal(t, machinetest.Outcome(l.outcome), machinetest.Outcome(outcome), "command %d", i)
				var texts []string
				for _, e := range effects {
					texts = append(texts, h.names.Effect(e))
				}
				require.Equal(t, l.effects, texts, "command %d", i)
				if how := rapid.IntRange(0, 9).Draw(t, "commit"); how < 4 {
					d.commit(uint64(i+1), how == 0)
				}
			}
			require.Equal(t, *h.parts[p].state.Meta(), *d.txn.Meta())
			for _, id := range h.ids {
				want, err := h.parts[p].state.Invocation(id)
				require.NoError(t, err)
				got, err := d.txn.Invocation(id)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			d.txn.Discard()
			require.NoError(t, d.db.Close())
		}
	})
}
