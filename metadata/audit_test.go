package metadata

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"platform/internal/feature"
	"platform/metadata/hashtree"
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
	ctx, recorded = WithAction(t.Context(), action)
	require.Error(t, s.DeleteDeployment(ctx, registered.Deployment.ID))
	require.False(t, recorded(), "a refused change is not recorded with the change")
	require.NoError(t, s.RecordAction(t.Context(), fullAction()))

	ctx, _ = WithAction(t.Context(), action)
	_, err = s.PutRules(ctx, nil)
	require.NoError(t, err)

	records := ascending(t, s)
	require.Len(t, records, 4, "what changed nothing is not recorded")
	requireIntact(t, s)
	require.Equal(t, action, records[0].Action)
	require.Empty(t, records[0].Before)
	require.Len(t, records[0].After, 32)
	require.Equal(t, records[0].After, records[1].Before, "digests of the same deployment agree")
	require.NotEqual(t, records[1].Before, records[1].After)
	require.Equal(t, records[1].After, records[2].Before)
	require.Empty(t, records[2].After, "it was deleted")
	require.Equal(t, fullAction(), records[3].Action)

	some, err := s.Audit(4, 2)
	require.NoError(t, err)
	require.Equal(t, []AuditRecord{records[2], records[1]}, some)
	past, err := s.Audit(1000, 1)
	require.NoError(t, err)
	require.Equal(t, records[3], past[0])
}

func requireIntact(t *testing.T, s *Store) AuditState {
	state, err := s.VerifyAudit()
	require.NoError(t, err)
	require.NoError(t, state.Problem)
	return state
}

func TestTamperingWithTheAuditLogIsDetected(t *testing.T) {
	rewrite := func(tx *bbolt.Tx, from, to uint64, change func(*AuditRecord)) {
		r, err := readAudit(tx.Bucket([]byte(tableAudit)).Get([]byte(auditKey(from))))
		require.NoError(t, err)
		change(&r)
		value, err := auditToProto(&r).MarshalVT()
		require.NoError(t, err)
		require.NoError(t, tx.Bucket([]byte(tableAudit)).Put([]byte(auditKey(to)), sealed(value)))
	}
	for name, tamper := range map[string]func(tx *bbolt.Tx){
		"changed": func(tx *bbolt.Tx) { rewrite(tx, 3, 3, func(r *AuditRecord) { r.Action.Principal = "mallory" }) },
		"rehashed": func(tx *bbolt.Tx) {
			rewrite(tx, 3, 3, func(r *AuditRecord) { r.Action.Status, r.Hash = 200, bytes.Repeat([]byte{1}, 32) })
		},
		"removed":       func(tx *bbolt.Tx) { require.NoError(t, tx.Bucket([]byte(tableAudit)).Delete([]byte(auditKey(3)))) },
		"first removed": func(tx *bbolt.Tx) { require.NoError(t, tx.Bucket([]byte(tableAudit)).Delete([]byte(auditKey(1)))) },
		"repeated":      func(tx *bbolt.Tx) { rewrite(tx, 2, 3, func(*AuditRecord) {}) },
		"renumbered":    func(tx *bbolt.Tx) { rewrite(tx, 2, 3, func(r *AuditRecord) { r.Sequence = 3 }) },
		"hidden": func(tx *bbolt.Tx) {
			require.NoError(t, tx.Bucket([]byte(tableAudit)).Delete([]byte(auditKey(3))))
			n := hashtree.Node{Index: 2, Hash: bytes.Repeat([]byte{7}, 32)}
			value, err := treeNodeToProto(&n).MarshalVT()
			require.NoError(t, err)
			require.NoError(t, tx.Bucket([]byte(tableAuditNodes)).Put([]byte(auditNodeKey(&n)), sealed(value)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAudited(t)
			for range 5 {
				require.NoError(t, s.RecordAction(t.Context(), fullAction()))
			}
			require.Equal(t, 5, requireIntact(t, s).Kept)
			require.NoError(t, s.replica.fsm.db.bolt.Update(func(tx *bbolt.Tx) error {
				tamper(tx)
				return nil
			}))
			state, err := s.VerifyAudit()
			require.NoError(t, err)
			require.Error(t, state.Problem)
		})
	}
}

// The principal with the most records only displaces its own.
func TestPrincipalsCannotDisplaceAuditRecordsOfOthers(t *testing.T) {
	s := openAudited(t)
	f := s.replica.fsm
	d := newDraft(f.current().state)
	by := func(principal string) {
		action := fullAction()
		action.Principal = principal
		require.NoError(t, d.record(&AuditRecord{At: goldenTime, Action: action}))
	}
	by("alice")
	for range MaxAuditRecords / 2 {
		by("mallory")
	}
	by("bob")
	for range 2 * MaxAuditRecords {
		by("mallory")
	}
	require.Equal(t, MaxAuditRecords, d.audit.count)
	require.NoError(t, f.db.write(*f.applied.Load(), d.writes))

	state := requireIntact(t, s)
	require.Equal(t, MaxAuditRecords, state.Kept)
	require.Equal(t, MaxAuditRecords*3/2+2, state.Deleted)
	require.Equal(t, uint64(1), state.First)
	records := ascending(t, s)
	require.Equal(t, "alice", records[0].Action.Principal)
	require.Equal(t, "bob", records[1].Action.Principal)
	require.Equal(t, uint64(MaxAuditRecords/2+2), records[1].Sequence)
	require.Less(t, len(d.audit.nodes), 64, "deleted records leave few hashes")

	var again *auditLog
	require.NoError(t, f.db.bolt.View(func(tx *bbolt.Tx) (err error) {
		again, err = readAuditLog(tx)
		return err
	}))
	require.Equal(t, d.audit.peaks, again.peaks)
	require.Equal(t, d.audit.nodes, again.nodes)
	require.Equal(t, d.audit.bytes, again.bytes)
	require.Equal(t, d.audit.count, again.count)

	// The hash of the last record proves those of others, across deleted ones.
	require.NoError(t, f.db.bolt.Update(func(tx *bbolt.Tx) error {
		records[0].Action.Object = "/something/else"
		value, err := auditToProto(&records[0]).MarshalVT()
		require.NoError(t, err)
		return tx.Bucket([]byte(tableAudit)).Put([]byte(auditKey(1)), sealed(value))
	}))
	state, err := s.VerifyAudit()
	require.NoError(t, err)
	require.Error(t, state.Problem)
}

// Replicas of other releases at the same feature level must keep the same records.
func TestAuditBoundsBelongToTheFeatureLevel(t *testing.T) {
	require.Equal(t, []int64{20_000, 64 << 20, 128}, []int64{MaxAuditRecords, MaxAuditBytes, auditOverhead},
		"other bounds need a new feature level, and the cluster's level must select them")
}

func TestAuditLogIsBoundedInBytes(t *testing.T) {
	d := newDraft(emptyState())
	long := fullAction()
	long.Object, long.Reason = strings.Repeat("x", 64<<10), strings.Repeat("a\xff", 1000)
	for range MaxAuditObjects + 1 {
		long.Objects = append(long.Objects, strings.Repeat("i", 40))
	}
	const records = 2000
	for range records {
		d.writes = nil
		require.NoError(t, d.record(&AuditRecord{At: goldenTime, Action: long}))
		for _, w := range d.writes {
			require.Less(t, len(w.value), 160<<10)
		}
	}
	require.LessOrEqual(t, d.audit.bytes, int64(MaxAuditBytes))
	require.Less(t, d.audit.count, records)
	require.Greater(t, d.audit.count, records/3)
}

func TestLongNamesInTheAuditLogRemainDistinct(t *testing.T) {
	prefix := strings.Repeat("x", 2*maxAuditObject)
	a, b := bounded(prefix+"a", maxAuditObject), bounded(prefix+"b", maxAuditObject)
	require.NotEqual(t, a, b)
	for _, text := range []string{a, strings.Repeat("a\xff", maxAuditText/2), strings.Repeat("é", maxAuditText), "\xff"} {
		once := bounded(text, maxAuditText)
		require.LessOrEqual(t, len(once), maxAuditText)
		require.True(t, utf8.ValidString(once))
		require.Equal(t, once, bounded(once, maxAuditText), "the digest of a stored record is that of the recorded one")
	}
}

func TestAuditLogContinuesAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metadata")
	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, s.RecordAction(t.Context(), fullAction()))
	}
	require.NoError(t, stop())
	s, stop, err = openReplica(dir)
	require.NoError(t, err)
	require.NoError(t, s.RecordAction(t.Context(), fullAction()))
	require.Equal(t, AuditState{Kept: 4, First: 1, Last: 4, Hash: ascending(t, s)[3].Hash}, requireIntact(t, s))
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
