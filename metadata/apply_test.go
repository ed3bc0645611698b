package metadata

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/ids"
)

func TestFirstProvisioningWins(t *testing.T) {
	m := newMemStore()
	_, known := m.Cluster()
	require.False(t, known)
	first, err := m.Provision(t.Context(), Cluster{Name: "one", Partitions: 8})
	require.NoError(t, err)
	require.NotEmpty(t, first.ID)
	require.False(t, first.ProvisionedAt.IsZero())

	second, err := m.Provision(t.Context(), Cluster{Name: "two", Partitions: 24})
	require.NoError(t, err)
	require.Equal(t, first, second)
	got, known := m.Cluster()
	require.True(t, known)
	require.Equal(t, first, got)

	for _, bad := range []Cluster{{Partitions: 1}, {Name: "x"}, {Name: "x", Partitions: MaxPartitions + 1}} {
		_, err := newMemStore().Provision(t.Context(), bad)
		require.ErrorContains(t, err, "a name and 1 to 65535 partitions are needed")
	}
}

func TestNodesKeepTheirIDs(t *testing.T) {
	m := newMemStore()
	register := func(n Node) Node {
		got, err := m.RegisterNode(t.Context(), n)
		require.NoError(t, err)
		return got
	}
	b := register(Node{Name: "b", FabricAddress: "old"})
	require.EqualValues(t, 1, b.ID)
	require.EqualValues(t, 7, register(Node{Name: "c", ID: 7}).ID)
	require.EqualValues(t, 8, register(Node{Name: "a"}).ID)

	_, changed := m.Watch()
	moved := register(Node{Name: "b", FabricAddress: "new", Incarnation: "2"})
	require.EqualValues(t, 1, moved.ID)
	require.Equal(t, b.RegisteredAt, moved.RegisteredAt)
	<-changed
	_, changed = m.Watch()
	register(moved)
	select {
	case <-changed:
		t.Fatal("registering the same again changed something")
	default:
	}
	var names []string
	for _, n := range m.Nodes() {
		names = append(names, n.Name)
	}
	require.Equal(t, []string{"a", "b", "c"}, names)

	for _, bad := range []Node{{Name: "d", ID: 7}, {Name: "b", ID: 9}} {
		_, err := m.RegisterNode(t.Context(), bad)
		require.ErrorIs(t, err, ErrNodeConflict)
	}
	_, err := m.RegisterNode(t.Context(), Node{})
	require.ErrorContains(t, err, "name is empty")
}

func TestForcedRegistrationNeedsOneDeploymentAtTheAddress(t *testing.T) {
	// Updates in place can lead to this state, registrations cannot.
	twin := func(id ids.Deployment) *Deployment { return &Deployment{ID: id, URI: "http://a/"} }
	s := newSchemas(1, map[ids.Deployment]*Deployment{"dp_1a": twin("dp_1a"), "dp_1b": twin("dp_1b")}, nil)
	_, err := s.Plan(Registration{Deployment: &Deployment{ID: "dp_1c", URI: "http://a/"}, Force: true}, goldenTime)
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.META0017, code)
	require.ErrorContains(t, err, "dp_1a, dp_1b")

	got, err := s.Plan(Registration{Deployment: &Deployment{ID: "dp_1c", URI: "http://a/"}}, goldenTime)
	require.NoError(t, err)
	require.Equal(t, Unchanged, got.Change)
	require.Equal(t, ids.Deployment("dp_1a"), got.Deployment.ID)
}

func TestViewsAreImmutable(t *testing.T) {
	m := newMemStore()
	register := func(uri string, force bool) {
		_, err := m.RegisterDeployment(t.Context(), Registration{
			Deployment: &Deployment{URI: uri, Services: []*Service{{Name: "Greeter"}}}, Force: force,
		})
		require.NoError(t, err)
	}
	register("http://a/", false)
	before, changed := m.Watch()
	description := describeRegistry(before)
	register("http://a/", true)
	register("http://b/", false)
	<-changed
	require.Equal(t, description, describeRegistry(before))
	require.NotEqual(t, description, describeRegistry(m.Schemas()))
	require.Greater(t, m.Schemas().Version, before.Version)
}
