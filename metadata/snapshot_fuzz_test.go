package metadata

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
)

// FuzzImport checks that a state with an arbitrary record is either rejected without
// effect, or usable and exportable.
func FuzzImport(f *testing.F) {
	state := map[string][]byte{}
	seed := func(table, key string, m interface{ MarshalVT() ([]byte, error) }) {
		value, err := m.MarshalVT()
		require.NoError(f, err)
		f.Add(uint8(slices.Index(tables, table)), key, value)
		state[table+"/"+key] = sealed(value)
	}
	seed(tableCluster, clusterKey, clusterToProto(fullCluster()))
	seed(tableNodes, "n1", nodeToProto(fullNode()))
	for _, d := range []*Deployment{fullDeployment(), fullFunction()} {
		seed(tableDeployments, string(d.ID), deploymentToProto(d))
	}
	seed(tablePartitions, "7", partitionToProto(fullPartition()))
	seed(tableRequests, "300", requestToProto(request{index: 300, id: "0123456789abcdef", result: []byte("result")}))
	f.Add(uint8(slices.Index(tables, tableMeta)), versionKey, []byte{0, 0, 0, formatVersion})
	f.Add(uint8(slices.Index(tables, tableMeta)), "x", []byte{})

	dir := f.TempDir()
	fsm := openFSM(f, filepath.Join(dir, "state"))
	f.Cleanup(func() { require.NoError(f, fsm.db.bolt.Close()) })
	state[tableMeta+"/"+versionKey] = exportedVersion(f, fsm)
	defaults := StandardDefaults()
	f.Fuzz(func(t *testing.T, table uint8, key string, value []byte) {
		rows := maps.Clone(state)
		rows[tables[int(table)%len(tables)]+"/"+key] = sealed(value)
		before, view := exported(t, fsm), fsm.view.Load()
		if err := imported(fsm, rows); err != nil {
			require.Equal(t, before, exported(t, fsm))
			require.Same(t, view, fsm.view.Load())
			return
		}
		again := exported(t, fsm)
		for k, v := range again {
			require.Equal(t, string(rows[k]), v, "record %s", k)
		}
		st, at, err := fsm.db.load()
		require.NoError(t, err)
		require.Equal(t, raftgroup.Position{Index: 400, Term: 2}, at)
		require.Len(t, st.nodes, len(fsm.view.Load().nodes))
		for _, s := range st.schemas.Services {
			for _, h := range s.Handlers {
				Effective(h, s, &defaults)
			}
			_, _, _ = st.schemas.Latest(s.Name)
		}
		for _, d := range st.schemas.Deployments {
			st.schemas.Find(d.Address(), d.AdditionalHeaders, []string{"x"})
			_, _ = st.schemas.Plan(Registration{Deployment: fullDeployment(), Force: true}, goldenTime)
		}
	})
}

func imported(f *fsm, rows map[string][]byte) error {
	i, err := f.Import()
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if err := i.Put([]byte(key), rows[key]); err != nil {
			_ = i.Abort()
			return err
		}
	}
	return i.Commit(context.Background(), raftgroup.Position{Index: 400, Term: 2})
}

func exportedVersion(t require.TestingT, f *fsm) []byte {
	return []byte(exported(t, f)[tableMeta+"/"+versionKey])
}
