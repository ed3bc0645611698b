package metadata

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"platform/internal/feature"
)

// openAudited opens a replica of a cluster at feature level 4.
func openAudited(t *testing.T) *Store {
	s, stop, err := openReplica(filepath.Join(t.TempDir(), "metadata"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	return s
}

func ascending(t *testing.T, s *Store) []AuditRecord {
	records, err := s.Audit(0, MaxAuditRecords)
	require.NoError(t, err)
	slices.Reverse(records)
	return records
}

func TestChangesAndTheirAuditRecordsAreOneEntry(t *testing.T) {
	s := openAudited(t)
	action := fullAction()
	action.Outcome, action.Status = "", 0
	ctx, recorded := WithAction(t.Context(), action)
	require.False(t, recorded())
	index := s.AppliedIndex()
	registered, err := s.RegisterDeployment(ctx, Registration{Deployment: fullDeployment()})
	require.NoError(t, err)
	require.True(t, recorded())
	require.Equal(t, index+1, s.AppliedIndex(), "one entry")

	ctx, _ = WithAction(t.Context(), action)
	_, err = s.ModifyService(ctx, "Greeter", Options{Public: ptr(true)})
	require.NoError(t, err)
	ctx, _ = WithAction(t.Context(), action)
	require.NoError(t, s.DeleteDeployment(ctx, registered.Deployment.ID))
	ctx, _ = WithAction(t.Context(), action)
	require.Error(t, s.DeleteDeployment(ctx, registered.Deployment.ID))
	require.NoError(t, s.RecordAction(t.Context(), fullAction()))

	records := ascending(t, s)
	require.Len(t, records, 5)
	require.NoError(t, VerifyAudit(records))
	require.Equal(t, action, records[0].Action)
	require.Empty(t, records[0].Before)
	require.Len(t, records[0].After, 32)
	require.Equal(t, records[0].After, records[1].Before, "digests of the same deployment agree")
	require.NotEqual(t, records[1].Before, records[1].After)
	require.Equal(t, records[1].After, records[2].Before)
	require.Empty(t, records[2].After, "it was deleted")
	require.Contains(t, records[3].Action.Outcome, "does not exist")
	require.Equal(t, fullAction(), records[4].Action)

	some, err := s.Audit(4, 2)
	require.NoError(t, err)
	require.Equal(t, []AuditRecord{records[2], records[1]}, some)
	past, err := s.Audit(1000, 1)
	require.NoError(t, err)
	require.Equal(t, records[4], past[0])
}

func TestTamperingWithTheAuditLogIsDetected(t *testing.T) {
	s := openAudited(t)
	for range 5 {
		require.NoError(t, s.RecordAction(t.Context(), fullAction()))
	}
	records := ascending(t, s)
	require.NoError(t, VerifyAudit(records))
	require.NoError(t, VerifyAudit(records[2:]), "the oldest records may have been deleted")
	for name, tamper := range map[string]func([]AuditRecord) []AuditRecord{
		"changed":  func(r []AuditRecord) []AuditRecord { r[2].Action.Principal = "mallory"; return r },
		"rehashed": func(r []AuditRecord) []AuditRecord { r[2].Action.Status = 200; r[2].Hash = r[2].digest(); return r },
		"removed":  func(r []AuditRecord) []AuditRecord { return slices.Delete(r, 2, 3) },
		"swapped":  func(r []AuditRecord) []AuditRecord { r[2], r[3] = r[3], r[2]; return r },
		"renumbered": func(r []AuditRecord) []AuditRecord {
			r = slices.Delete(r, 2, 3)
			for i := range r {
				r[i].Sequence = uint64(i + 1)
			}
			return r
		},
	} {
		require.Error(t, VerifyAudit(tamper(slices.Clone(records))), name)
	}
}

func TestAuditLogIsBoundedAndContinuesAfterARestart(t *testing.T) {
	d := newDraft(emptyState())
	d.cluster.FeatureLevel = feature.Level4
	long := fullAction()
	long.Object, long.Reason = strings.Repeat("x", 1<<20), "\xff"
	for range MaxAuditRecords + 10 {
		d.writes = nil
		require.NoError(t, d.audit(goldenTime, &long, outcome{}, &state{schemas: newSchemas(0, nil)}, 0))
		for _, w := range d.writes {
			require.Less(t, len(w.value), 2048)
		}
	}
	require.Equal(t, uint64(MaxAuditRecords+10), d.auditHead.sequence)
	require.Equal(t, uint64(11), d.auditHead.first)
	require.Len(t, d.writes, 2, "one record is added, one deleted")

	dir := filepath.Join(t.TempDir(), "metadata")
	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	require.NoError(t, s.RecordAction(t.Context(), fullAction()))
	require.NoError(t, stop())
	s, stop, err = openReplica(dir)
	require.NoError(t, err)
	require.NoError(t, s.RecordAction(t.Context(), fullAction()))
	require.NoError(t, VerifyAudit(ascending(t, s)))
	require.Len(t, ascending(t, s), 2)
	require.NoError(t, stop())
}

func TestTablesAreAddedToExistingFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	db, err := openDatabase(path)
	require.NoError(t, err)
	require.NoError(t, db.bolt.Update(func(tx *bbolt.Tx) error {
		for _, table := range addedTables {
			require.NoError(t, tx.DeleteBucket([]byte(table)))
		}
		return nil
	}))
	require.NoError(t, db.close())
	db, err = openDatabase(path)
	require.NoError(t, err)
	_, _, err = db.load()
	require.NoError(t, err)
	require.NoError(t, db.close())
}
