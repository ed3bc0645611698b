package partition

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/store"
)

func TestOnlyItsOwnAnnouncementMakesALeader(t *testing.T) {
	own := &leadership{epoch: 6, term: 3}
	for name, c := range map[string]struct {
		epoch, term uint64
		want        *leadership
	}{
		"its own":                                   {6, 3, own},
		"of another replica with the same epoch":    {6, 4, nil},
		"of the same replica's previous leadership": {5, 3, nil},
		"of a replica that led earlier":             {6, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var r role
			r.begin(own)
			r.enter(c.epoch, c.term)
			require.Equal(t, c.want, r.leadership())
		})
	}
}

// The announcement of the leader that sends a snapshot may be in the snapshot.
func TestAnInstalledSnapshotEndsTheReceptionOfEffects(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tables, err := db.Partition(0)
	require.NoError(t, err)
	export, err := tables.Export()
	require.NoError(t, err)
	own := &leadership{epoch: 6, term: 3}
	p := &Partition{tables: tables, digests: newDigests(tables, DigestConfig{}, nil, nil, nil)}
	p.role.begin(own)
	p.role.enter(own.epoch, own.term)
	imp, err := (&fsm{p: p, tables: tables}).Import()
	require.NoError(t, err)
	require.NoError(t, export.Each(t.Context(), imp.Put))
	require.Same(t, own, p.role.leadership())
	require.NoError(t, imp.Commit(t.Context(), position(export.Applied())))
	require.NoError(t, export.Close())
	require.Nil(t, p.role.leadership())
}

// A server that is older than the log must not write to it, even if it could read all entries.
func TestAServerBelowTheLevelOfTheLogDoesNotLead(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tables, err := db.Partition(0)
	require.NoError(t, err)
	p := &Partition{tables: tables, cfg: Config{Clock: machineClock{}}}
	_, err = p.beforeLeading(t.Context())
	require.NoError(t, err)
	txn := tables.Begin()
	txn.Meta().Level = feature.Supported() + 1
	require.NoError(t, txn.Commit(1, 1))
	_, err = p.beforeLeading(t.Context())
	var unsupported *feature.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, feature.Supported()+1, unsupported.Cluster)
}
