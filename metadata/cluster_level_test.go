package metadata

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/raftgroup"
)

func TestPlanLevel(t *testing.T) {
	n1, n2 := Node{Name: "n1", ID: 1, Incarnation: "a"}, Node{Name: "n2", ID: 2, Incarnation: "b"}
	says := func(n Node, level feature.Level) Announcement {
		return Announcement{Server: n.ServerID(), Supported: level}
	}
	held := says(n2, 2)
	held.Hold = true
	for name, tc := range map[string]struct {
		level     feature.Level
		announced map[uint32]Announcement
		next      feature.Level
		held      bool
		waiting   []string
	}{
		"all support it":          {1, map[uint32]Announcement{1: says(n1, 2), 2: says(n2, 2)}, 2, false, nil},
		"reached":                 {2, map[uint32]Announcement{1: says(n1, 2)}, 2, false, nil},
		"no member supports more": {1, map[uint32]Announcement{1: says(n1, 1)}, 1, false, nil},
		"one is older":            {1, map[uint32]Announcement{1: says(n1, 2), 2: says(n2, 1)}, 1, false, []string{"node n2 supports feature level 1; upgrade it"}},
		"one does not answer":     {1, map[uint32]Announcement{1: says(n1, 2)}, 1, false, []string{"node n2 does not respond; start or remove it"}},
		"another in its place":    {1, map[uint32]Announcement{1: says(n1, 2), 2: says(n1, 2)}, 1, false, []string{"node n2 does not respond; start or remove it"}},
		"one holds it":            {1, map[uint32]Announcement{1: says(n1, 2), 2: held}, 2, true, []string{"node n2 holds the level (feature-level-hold)"}},
		"up by several levels":    {1, map[uint32]Announcement{1: says(n1, 4), 2: says(n2, 3)}, 3, false, []string{"node n2 supports feature level 3; upgrade it"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Layout{Cluster: Cluster{ID: "x", FeatureLevel: tc.level}, Nodes: []Node{n1, n2}}
			p := PlanLevel(l, tc.announced)
			require.Equal(t, tc.level, p.Level)
			require.Equal(t, tc.next, p.Next)
			require.Equal(t, tc.held, p.Held)
			require.Equal(t, tc.waiting, p.Waiting)
		})
	}
}

func TestTheFeatureLevelRisesOnceAllMembersSupportMore(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(3, 2)
	c.awaitVoters(3, 0, nodes...)
	for i, n := range nodes {
		require.Equal(t, feature.Level1, n.FeatureLevel())
		c.announce(n, Announcement{Supported: feature.Level2, Hold: i == 2})
	}
	leader, _ := c.leader(nodes...)
	require.NoError(t, leader.controlLevel(t.Context(), leader.source.current(), c))
	require.Equal(t, feature.Level1, leader.FeatureLevel(), "a node holds the level")
	c.announce(nodes[2], Announcement{Supported: feature.Level2})
	require.Eventually(t, func() bool {
		for _, n := range nodes {
			if n.FeatureLevel() != feature.Level2 {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond)

	// Nodes that announce less are rejected from now on, including returning members.
	_, err := nodes[1].AddNode(t.Context(), Node{Name: "n9", Incarnation: "a"}, false)
	require.ErrorIs(t, err, ErrNodeTooOld)
	require.ErrorContains(t, err, "node n9 supports feature level 1; the cluster is at 2 since ")
	_, err = nodes[1].RegisterNode(t.Context(), nodes[0].self)
	require.ErrorIs(t, err, ErrNodeTooOld)
	self := nodes[0].self
	self.FeatureLevel = feature.Level2
	registered, err := nodes[1].RegisterNode(t.Context(), self)
	require.NoError(t, err)
	require.Equal(t, feature.Level2, registered.FeatureLevel)

	// It is kept after a restart, whatever nodes announce then.
	stopped := nodes[2]
	stopped.stop()
	for _, n := range nodes {
		c.announce(n, Announcement{Supported: feature.Level1})
	}
	again := c.start(stopped.self.Name, "a", string(stopped.address), false)
	require.Equal(t, feature.Level2, again.FeatureLevel())
}

func TestTheFeatureLevelIsNotRaisedIfMembersChanged(t *testing.T) {
	m := provisioned(t)
	l, _ := m.Layout()
	plan := PlanLevel(l, map[uint32]Announcement{1: {Server: "n1/a", Supported: feature.Level2}})
	m.add(t, "n2", "a")
	_, err := m.RaiseFeatureLevel(t.Context(), plan)
	require.ErrorIs(t, err, ErrMembersChanged)
	require.Equal(t, feature.Level1, m.FeatureLevel())

	l, _ = m.Layout()
	plan = PlanLevel(l, map[uint32]Announcement{1: {Server: "n1/a", Supported: feature.Level2}, 2: {Server: "n2/a", Supported: feature.Level2}})
	cluster, err := m.RaiseFeatureLevel(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, feature.Level2, cluster.Level())
	require.False(t, cluster.FeatureLevelAt.IsZero())
	again, err := m.RaiseFeatureLevel(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, cluster, again)
}

func TestCommandsAboveTheLevelAreNotProposed(t *testing.T) {
	m := provisioned(t)
	var rejected *feature.Error
	require.ErrorAs(t, m.mayPropose(&registerNode{node: leveledNode()}), &rejected)
	require.Equal(t, feature.Level2, rejected.Needs)
	// The level of a node is omitted instead.
	n, err := m.AddNode(t.Context(), Node{Name: "n2", Incarnation: "a", FeatureLevel: feature.Level2}, false)
	require.NoError(t, err)
	require.Zero(t, n.FeatureLevel)
}

func TestANewClusterMayStartAtAHigherLevel(t *testing.T) {
	m := newMemStore()
	c, err := m.Provision(t.Context(), Cluster{Name: "local", Partitions: 3, FeatureLevel: feature.Level2})
	require.NoError(t, err)
	require.Equal(t, feature.Level2, c.Level())
	require.Equal(t, c.ProvisionedAt, c.FeatureLevelAt)
	require.NoError(t, c.CheckJoin(2))
	code, _ := errcode.Of(c.CheckJoin(0))
	require.Equal(t, errcode.META0018, code)
	var unsupported *feature.UnsupportedError
	require.ErrorAs(t, c.CheckJoin(1), &unsupported)
	require.Equal(t, feature.UnsupportedError{Cluster: 2, Since: c.FeatureLevelAt, Supported: 1}, *unsupported)
}

// The first release reads only formats 1 to 3.
func TestStateFilesAndSnapshotsHaveTheFormatOfTheLevel(t *testing.T) {
	format := func(f *fsm) (v uint32) {
		require.NoError(t, f.db.bolt.View(func(tx *bbolt.Tx) (err error) {
			v, err = readFormat(tx.Bucket([]byte(tableMeta)).Get([]byte(versionKey)))
			return err
		}))
		return v
	}
	apply := func(f *fsm, index uint64, cmd command) {
		data, err := encodeEntry(header{at: goldenTime}, cmd)
		require.NoError(t, err)
		_, err = f.Apply([]raftgroup.Entry{{Index: index, Term: 1, Data: data}})
		require.NoError(t, err)
	}
	path := filepath.Join(t.TempDir(), "state.db")
	f := openFSM(t, path)
	apply(f, 1, &provision{fullCluster()})
	require.EqualValues(t, 3, format(f))
	low := exported(t, f)
	apply(f, 2, &setFeatureLevel{level: feature.Level2, members: []string{}})
	require.EqualValues(t, 4, format(f))
	require.NoError(t, f.db.close())
	f = openFSM(t, path)
	defer f.db.close()
	require.EqualValues(t, 4, format(f))
	require.Equal(t, feature.Level2, f.current().cluster.Level())

	follower := openFSM(t, filepath.Join(t.TempDir(), "state.db"))
	defer follower.db.close()
	for want, content := range map[uint32]map[string]string{3: low, 4: exported(t, f)} {
		i, err := follower.Import()
		require.NoError(t, err)
		for key, value := range content {
			require.NoError(t, i.Put([]byte(key), []byte(value)))
		}
		require.NoError(t, i.Commit(t.Context(), raftgroup.Position{Index: 2, Term: 1}))
		require.Equal(t, want, format(follower))
	}
}

func TestAReplicaStopsAtAnEntryOfALevelThatItDoesNotSupport(t *testing.T) {
	f := openFSM(t, filepath.Join(t.TempDir(), "state.db"))
	defer f.db.close()
	data, err := encodeEntry(header{at: goldenTime}, &setFeatureLevel{level: feature.Newest + 1})
	require.NoError(t, err)
	_, err = f.Apply([]raftgroup.Entry{{Index: 1, Term: 1, Data: data}})
	var unsupported *feature.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, feature.Newest+1, unsupported.Cluster)
	require.Zero(t, f.Applied())
}
