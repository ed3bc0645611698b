package metadata

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
)

// childDir makes the test binary a process that registers deployments until it is killed.
const childDir = "METADATA_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		err := registerUntilKilled(dir)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// openReplica opens the only replica of a group. stop closes all of it and may be called
// once.
func openReplica(dir string) (s *Store, stop func() error, err error) {
	const address = "127.0.0.1:1" // never dialed: there are no other nodes
	quiet := slog.New(slog.DiscardHandler)
	transport, err := raftgroup.NewTransport(raftgroup.TransportConfig{
		ClusterID: "test", NodeID: "n1", Address: address, Logger: quiet,
	})
	if err != nil {
		return nil, nil, err
	}
	s, err = Open(Config{
		Dir: dir, LocalID: "n1", Transport: transport,
		Voters:  []raft.Server{{ID: "n1", Address: address}},
		Profile: raftgroup.Test(), Logger: quiet, snapshotEvery: 10,
	})
	if err != nil {
		return nil, nil, errors.Join(err, transport.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	return s, func() error {
		cancel()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("run: %w", err)
		}
		return errors.Join(s.Close(), transport.Close())
	}, nil
}

func TestEverythingSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metadata")
	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	cluster, err := s.Provision(t.Context(), Cluster{Name: "local", Partitions: 4})
	require.NoError(t, err)
	node, err := s.RegisterNode(t.Context(), Node{Name: "n1", Incarnation: "x", AdminAddress: "http://127.0.0.1:9070"})
	require.NoError(t, err)
	want, err := s.RegisterDeployment(t.Context(), Registration{Deployment: fullDeployment()})
	require.NoError(t, err)
	require.Same(t, want.Deployment, s.Schemas().Deployments[want.Deployment.ID], "the change is visible when the call returns")
	require.NoError(t, stop())

	s, stop, err = openReplica(dir)
	require.NoError(t, err)
	got, known := s.Cluster()
	require.True(t, known)
	require.Equal(t, cluster, got)
	require.Equal(t, []Node{node}, s.Nodes())
	require.Equal(t, want.Deployment, s.Schemas().Deployments[want.Deployment.ID])
	require.Equal(t, want.Deployment.Services[0], s.Schemas().Services["Greeter"])

	require.NoError(t, s.DeleteDeployment(t.Context(), want.Deployment.ID))
	require.ErrorAs(t, s.DeleteDeployment(t.Context(), want.Deployment.ID), new(*NotFoundError))
	require.Empty(t, s.Schemas().Services)
	require.NoError(t, stop())

	s, stop, err = openReplica(dir)
	require.NoError(t, err)
	require.Empty(t, s.Schemas().Deployments)
	require.NoError(t, stop())
}

// TestWhatCannotBeStoredIsRejected makes changes that the state file or the log cannot hold. They
// must have no effect: if applying one failed, all replicas would stop, again after each restart.
func TestWhatCannotBeStoredIsRejected(t *testing.T) {
	s, stop, err := openReplica(t.TempDir())
	require.NoError(t, err)
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 1, FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	long, note := strings.Repeat("x", 40_000), "note"
	_, err = s.MarkFailure(t.Context(), FailureMarkEdit{Group: long, Note: &note})
	require.ErrorAs(t, err, new(*InvalidError))
	require.Empty(t, s.FailureMarks())
	for _, name := range []string{"", long} {
		_, err = propose[Node](t.Context(), s, &registerNode{node: Node{Name: name, Incarnation: "x", FeatureLevel: feature.Supported()}})
		require.ErrorAs(t, err, new(*InvalidError))
	}
	begin := time.Now()
	_, err = s.RegisterNode(t.Context(), Node{Name: "n1", AdminAddress: strings.Repeat("x", limits.Entry), FeatureLevel: feature.Supported()})
	require.ErrorIs(t, err, raftgroup.ErrTooLarge)
	require.Less(t, time.Since(begin), proposeTimeout/2, "retried")
	require.Empty(t, s.Nodes())
	_, err = s.RegisterNode(t.Context(), Node{Name: "n1", Incarnation: "x", FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	require.NoError(t, stop())
}

func TestTheLogIsTruncatedPeriodically(t *testing.T) {
	dir := t.TempDir()
	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	for i := range 25 {
		_, err := s.RegisterNode(t.Context(), Node{Name: fmt.Sprint("n", i)})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return s.Group().Stats().SnapshotIndex > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, stop())

	s, stop, err = openReplica(dir)
	require.NoError(t, err)
	require.Len(t, s.Nodes(), 25)
	_, err = s.RegisterNode(t.Context(), Node{Name: "one more"})
	require.NoError(t, err)
	require.NoError(t, stop())
}

func TestChangesFailWhenTheStoreIsClosed(t *testing.T) {
	s, stop, err := openReplica(t.TempDir())
	require.NoError(t, err)
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 1})
	require.NoError(t, err)
	require.NoError(t, stop())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.RegisterNode(ctx, Node{Name: "late"})
	require.ErrorIs(t, err, ErrUnavailable)
}

// registerUntilKilled acknowledges each registration on standard output.
func registerUntilKilled(dir string) error {
	s, _, err := openReplica(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := s.Provision(ctx, Cluster{Name: "local", Partitions: 8}); err != nil {
		return err
	}
	for i := 0; ; i++ {
		d := &Deployment{URI: fmt.Sprintf("http://%d/%d/", os.Getpid(), i), Services: []*Service{{Name: "Greeter"}}}
		got, err := s.RegisterDeployment(ctx, Registration{Deployment: d})
		if err != nil {
			return err
		}
		fmt.Println(got.Deployment.ID, got.Deployment.Services[0].Revision)
	}
}

func TestAcknowledgedChangesSurviveKills(t *testing.T) {
	const rounds = 5
	dir := filepath.Join(t.TempDir(), "metadata")
	acknowledged := map[ids.Deployment]string{}
	for round := range rounds {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childDir+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for range 3 + 7*round {
			require.True(t, lines.Scan(), "the child exited on its own")
			id, revision, _ := strings.Cut(lines.Text(), " ")
			acknowledged[ids.Deployment(id)] = revision
		}
		require.NoError(t, child.Process.Kill())
		for lines.Scan() { // also acknowledged before it was killed
			if id, revision, ok := strings.Cut(lines.Text(), " "); ok {
				acknowledged[ids.Deployment(id)] = revision
			}
		}
		require.Error(t, child.Wait())
	}

	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	_, err = s.RegisterNode(t.Context(), Node{Name: "n1"}) // the log has been replayed when this returns
	require.NoError(t, err)
	deployments := s.Schemas().Deployments
	for id, revision := range acknowledged {
		require.Contains(t, deployments, id)
		require.Equal(t, revision, fmt.Sprint(deployments[id].Services[0].Revision))
	}
	require.LessOrEqual(t, len(deployments), len(acknowledged)+rounds, "only the last one of a round can be unacknowledged")
	var revisions []uint32
	for d := range maps.Values(deployments) {
		revisions = append(revisions, d.Services[0].Revision)
	}
	slices.Sort(revisions)
	for i, revision := range revisions {
		require.EqualValues(t, i+1, revision, "revisions have no gaps and no duplicates")
	}
	require.NoError(t, stop())
}
