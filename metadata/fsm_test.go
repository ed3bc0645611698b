package metadata

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
)

func openFSM(t require.TestingT, path string) *fsm {
	db, err := openDatabase(path)
	require.NoError(t, err)
	db.bolt.NoSync = true // there is no power loss in this test
	f, err := newFSM(db)
	require.NoError(t, err)
	return f
}

// exported returns the records that a replica would send to another one.
func exported(t require.TestingT, f *fsm) map[string]string {
	e, err := f.Export()
	require.NoError(t, err)
	all := map[string]string{}
	last := ""
	require.NoError(t, e.Each(context.Background(), func(key, value []byte) error {
		require.Less(t, last, string(key), "keys ascend")
		last = string(key)
		all[last] = string(value)
		return nil
	}))
	require.NoError(t, e.Close())
	return all
}

// drawEntries generates a log of commands about few nodes and addresses.
func drawEntries(t *rapid.T) []raftgroup.Entry {
	var entries []raftgroup.Entry
	for i := range rapid.IntRange(1, 30).Draw(t, "entries") {
		at := goldenTime.Add(1)
		var cmd command
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			cmd = &provision{Cluster{Name: rapid.StringN(1, 5, 5).Draw(t, "cluster"), ID: "x", Partitions: 8}}
		case 1:
			cmd = &registerNode{node: Node{Name: drawName(t, "node"), ID: rapid.Uint32Max(4).Draw(t, "id"), FabricAddress: drawName(t, "address")}}
		case 2:
			d := &Deployment{ID: drawID(t), URI: drawName(t, "uri")}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 3, rapid.ID).Draw(t, "services") {
				d.Services = append(d.Services, &Service{Name: name, Type: ServiceType(rapid.IntRange(0, 1).Draw(t, "type"))})
			}
			cmd = &registerDeployment{Registration{Deployment: d, Force: rapid.Bool().Draw(t, "force")}}
		case 3:
			cmd = &deleteDeployment{drawID(t)}
		case 4:
			cmd = &removeNode{rapid.Uint32Max(4).Draw(t, "id"), rapid.Bool().Draw(t, "force")}
		case 5:
			cmd = &drainNode{rapid.Uint32Max(4).Draw(t, "id"), rapid.Bool().Draw(t, "draining")}
		case 6:
			replicas := rapid.SliceOfN(rapid.Uint32Max(4), 0, 3).Draw(t, "replicas")
			cmd = &setPartition{Partition{ID: rapid.Uint32Max(9).Draw(t, "partition"), Replicas: replicas}, rapid.Uint64Max(3).Draw(t, "version")}
		case 7:
			if rapid.Bool().Draw(t, "flow control") {
				cmd = &enableFlowControl{}
				break
			}
			if rapid.Bool().Draw(t, "feature level") {
				cmd = &setFeatureLevel{level: feature.Level2, members: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"p/", "q/", "r/"}), rapid.ID).Draw(t, "members")}
				break
			}
			cmd = &setReplication{rapid.Uint32Max(4).Draw(t, "replication")}
		}
		if cmd == nil {
			cmd = drawRuleChange(t)
		}
		request := rapid.SampledFrom([]string{"", "1", "2", "3", "4", "5", "6"}).Draw(t, "request")
		data, err := encodeEntry(header{at: at, request: request}, cmd)
		require.NoError(t, err)
		entries = append(entries, raftgroup.Entry{Index: uint64(i*2 + 3), Term: 1, Data: data})
	}
	return entries
}

func drawName(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, label)
}

func drawID(t *rapid.T) ids.Deployment {
	return ids.Deployment(fmt.Sprintf("dp_1%022d", rapid.IntRange(1, 4).Draw(t, "deployment")))
}

// describeState returns everything that readers can see.
func describeState(st *state) string {
	return fmt.Sprintf("%+v\n%+v\n%+v\n%+v\n%s%d\n%s", st.cluster, st.nodes, st.layout(), st.requests, describeBook(st.book), len(st.schemas.Deployments), describeRegistry(st.schemas))
}

func TestBatchesRestartsAndReplayChangeNothing(t *testing.T) {
	dir := t.TempDir()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		entries := drawEntries(rt)
		whole := openFSM(rt, filepath.Join(dir, fmt.Sprintf("whole-%d", round)))
		defer whole.db.close()
		want, err := whole.Apply(entries)
		require.NoError(rt, err)

		path := filepath.Join(dir, fmt.Sprintf("cut-%d", round))
		pieces := openFSM(rt, path)
		var got []any
		for from := 0; from < len(entries); {
			to := rapid.IntRange(from+1, len(entries)).Draw(rt, "cut")
			// Some applied entries are repeated.
			again := rapid.IntRange(0, from).Draw(rt, "again")
			results, err := pieces.Apply(entries[again:to])
			require.NoError(rt, err)
			got = append(got, results[from-again:]...)
			from = to
			if rapid.Bool().Draw(rt, "restart") {
				require.NoError(rt, pieces.db.close())
				pieces = openFSM(rt, path)
			}
		}
		defer func() { pieces.db.close() }()
		require.Equal(rt, describeResults(want), describeResults(got))
		require.Equal(rt, describeState(whole.current().state), describeState(pieces.current().state))
		require.Equal(rt, whole.Applied(), pieces.Applied())
		require.Equal(rt, exported(rt, whole), exported(rt, pieces))
	})
}

func describeResults(results []any) string {
	var out strings.Builder
	for _, r := range results {
		o := r.(outcome)
		if registered, ok := o.value.(Registered); ok {
			d := *registered.Deployment
			for _, s := range d.Services {
				fmt.Fprintf(&out, "  %+v\n", *s)
			}
			d.Services = nil // pointers
			fmt.Fprintf(&out, "%d %+v\n", registered.Change, d)
			continue
		}
		fmt.Fprintf(&out, "%+v %v\n", o.value, o.rejection)
	}
	return out.String()
}

func TestImportReplacesEverything(t *testing.T) {
	from, to := openFSM(t, filepath.Join(t.TempDir(), "a")), openFSM(t, filepath.Join(t.TempDir(), "b"))
	defer from.db.close()
	defer to.db.close()
	entry := func(index uint64, cmd command) raftgroup.Entry {
		data, err := encodeEntry(header{at: goldenTime}, cmd)
		require.NoError(t, err)
		return raftgroup.Entry{Index: index, Term: 2, Data: data}
	}
	_, err := from.Apply([]raftgroup.Entry{
		entry(5, &provision{fullCluster()}),
		entry(6, &registerNode{node: fullNode()}),
		entry(7, &registerDeployment{Registration{Deployment: fullDeployment()}}),
	})
	require.NoError(t, err)
	_, err = to.Apply([]raftgroup.Entry{entry(3, &registerNode{node: Node{Name: "other"}})})
	require.NoError(t, err)

	e, err := from.Export()
	require.NoError(t, err)
	i, err := to.Import()
	require.NoError(t, err)
	require.NoError(t, e.Each(t.Context(), i.Put))
	changed := to.current().changed
	require.NoError(t, i.Commit(t.Context(), e.Applied()))
	<-changed
	require.NoError(t, e.Close())
	require.Equal(t, raftgroup.Position{Index: 7, Term: 2}, to.Applied())
	require.Equal(t, exported(t, from), exported(t, to))
	require.Equal(t, describeState(from.current().state), describeState(to.current().state))

	reread, at, err := to.db.load()
	require.NoError(t, err)
	require.Equal(t, to.Applied(), at)
	require.Equal(t, describeState(from.current().state), describeState(reread))
}

func TestImportOfDamagedDataChangesNothing(t *testing.T) {
	f := openFSM(t, filepath.Join(t.TempDir(), "state.db"))
	defer f.db.close()
	before := exported(t, f)
	version := binary.BigEndian.AppendUint32(nil, formatVersion)

	i, err := f.Import()
	require.NoError(t, err)
	require.ErrorIs(t, i.Put([]byte("nodes/n1"), []byte("damaged")), ErrCorrupt)
	require.ErrorContains(t, i.Put([]byte("strange/n1"), sealed(nil)), "unknown key")
	require.NoError(t, i.Put([]byte("deployments/x"), sealed([]byte{0xff})))
	code, _ := errcode.Of(i.Commit(t.Context(), raftgroup.Position{Index: 9}))
	require.Equal(t, errcode.META0011, code)
	require.NoError(t, i.Put([]byte("meta/version"), sealed(version)))
	require.Error(t, i.Commit(t.Context(), raftgroup.Position{Index: 9}), "these bytes are not a deployment")
	require.NoError(t, i.Abort())

	require.Zero(t, f.Applied())
	require.Equal(t, before, exported(t, f))
}

func TestUndecodableEntriesStopTheReplica(t *testing.T) {
	f := openFSM(t, filepath.Join(t.TempDir(), "state.db"))
	defer f.db.close()
	good, err := encodeEntry(header{at: goldenTime}, &registerNode{node: Node{Name: "n1"}})
	require.NoError(t, err)
	_, err = f.Apply([]raftgroup.Entry{{Index: 1, Data: good}, {Index: 2, Data: []byte{0xff}}})
	require.Error(t, err)
	require.Zero(t, f.Applied())
	require.Empty(t, f.current().nodes, "a batch is atomic")
}

func TestUnusableStateFilesAreRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(tx *bbolt.Tx) error
		code  errcode.Code
	}{
		"version missing": {func(tx *bbolt.Tx) error { return tx.Bucket([]byte(tableMeta)).Delete([]byte(versionKey)) }, errcode.META0011},
		"newer version": {func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(tableMeta)).Put([]byte(versionKey), sealed(binary.BigEndian.AppendUint32(nil, newestFormat+1)))
		}, errcode.META0010},
		"newer feature level": {func(tx *bbolt.Tx) error {
			record, err := clusterToProto(Cluster{ID: "x", FeatureLevel: feature.Newest + 1, FeatureLevelAt: goldenTime}).MarshalVT()
			return errors.Join(err, tx.Bucket([]byte(tableCluster)).Put([]byte(clusterKey), sealed(record)))
		}, errcode.META0018},
		"damaged version":  {func(tx *bbolt.Tx) error { return tx.Bucket([]byte(tableMeta)).Put([]byte(versionKey), []byte("12345")) }, ""},
		"damaged position": {func(tx *bbolt.Tx) error { return tx.Bucket([]byte(tableMeta)).Put([]byte(appliedKey), []byte("12345")) }, ""},
		"damaged record":   {func(tx *bbolt.Tx) error { return tx.Bucket([]byte(tableNodes)).Put([]byte("n1"), []byte("12345")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			f := openFSM(t, path)
			require.NoError(t, f.db.bolt.Update(tc.spoil))
			require.NoError(t, f.db.close())
			db, err := openDatabase(path)
			if err == nil {
				_, err = newFSM(db)
				require.NoError(t, db.close())
			}
			require.Error(t, err)
			if tc.code == "" {
				require.ErrorIs(t, err, ErrCorrupt)
			}
			code, _ := errcode.Of(err)
			require.Equal(t, tc.code, code)
		})
	}
}

func TestStateFileIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f := openFSM(t, path)
	defer f.db.close()
	_, err := openDatabase(path)
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.RT0005, code)
}

func TestEmptyStateFileIsInitialized(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	bolt, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, bolt.Close())
	f := openFSM(t, path)
	defer f.db.close()
	require.Equal(t, []string{"meta/version"}, slices.Collect(maps.Keys(exported(t, f))))
}
