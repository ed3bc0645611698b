package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/cluster/load"
	"platform/test/harness"
	"platform/test/harness/sandbox"
)

// bed is a cluster with the services registered, on hosts and disks of its own where
// a sandbox can be made.
type bed struct {
	*harness.Cluster
	nodes   *load.Nodes
	network *sandbox.Network // nil without a sandbox
	disks   []*sandbox.Disk
	results *harness.Recorder
	service *harness.Service
	runs    int
	slack   time.Duration // by how much timers may come early
	readers bool          // state and outputs are read past the services
	// patience is how long clients repeat a request and wait for what was promised.
	patience time.Duration
}

// bedOptions tells what differs from a cluster of three.
type bedOptions struct {
	nodes  int
	env    map[string]string
	binary string
	disks  int64 // bytes of each node's disk, 0: they share the machine's

	service map[string]string  // environment of the services
	environ func(int) []string // further environment of node i

	failpoints string // to activate; binary must have been built with failpoints
}

// newBed starts a cluster for the duration of t.
func newBed(t *testing.T, o bedOptions) *bed {
	b := prepareBed(t, o)
	require.NoError(t, b.Start(t.Context()))
	b.register(t)
	return b
}

// prepareBed starts everything but the nodes.
func prepareBed(t *testing.T, o bedOptions) *bed {
	b := &bed{results: harness.RecorderFor(t), patience: time.Minute}
	if o.failpoints != "" {
		o.environ = func(int) []string { return []string{"FAILPOINTS=" + o.failpoints} }
	}
	if o.nodes == 0 {
		o.nodes = number(t, "CLUSTER_NODES", 3)
	}
	bin, err := harness.Build("platform/test/chaos/services")
	require.NoError(t, err)
	host := ""
	if sandbox.Available() == nil {
		host = sandbox.Hub
		b.build(t, o)
	}
	serviceEnv := map[string]string{"RECORDER": b.results.URL()}
	maps.Copy(serviceEnv, o.service)
	b.service = harness.ServiceFor(t, harness.ServiceOptions{Name: "services", Host: host, Command: []string{bin}, Env: serviceEnv})
	target, err := harness.TargetUnderTest()
	require.NoError(t, err)
	dir := t.TempDir()
	env := map[string]string{"LOG_DISABLE_ANSI_CODES": "true"}
	if levels := os.Getenv("CLUSTER_LOG"); levels != "" { // raft=debug shows each election
		env["LOG"] = levels
	}
	maps.Copy(env, o.env)
	b.Cluster, err = harness.NewCluster(target, harness.ClusterOptions{
		Nodes: o.nodes, Env: env, Dir: dir, Binary: o.binary, Placement: b.place(o),
	})
	require.NoError(t, err)
	t.Cleanup(func() { b.end(t, dir) })
	var clients []*harness.Client
	for _, n := range b.Nodes {
		clients = append(clients, n.Client)
	}
	b.nodes = load.NewNodes(clients)
	return b
}

// build makes hosts and disks.
func (b *bed) build(t *testing.T, o bedOptions) {
	var err error
	b.network, err = sandbox.NewNetwork(o.nodes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.network.Close()) })
	if o.disks == 0 {
		return
	}
	for i := range o.nodes {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		d, err := sandbox.NewDisk(dir, o.disks)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		b.disks = append(b.disks, d)
	}
}

// place says where the nodes run.
func (b *bed) place(o bedOptions) func(int) harness.Placement {
	return func(i int) harness.Placement {
		p := harness.Placement{Start: (*exec.Cmd).Start}
		if b.network != nil {
			host := b.network.Hosts[i]
			p = harness.Placement{Host: host.IP, Ports: []int{8080, 9070, 5122}, Start: host.Start}
		}
		if b.disks != nil {
			p.Data = b.disks[i].Path
		}
		if o.environ != nil {
			start := p.Start
			p.Start = func(cmd *exec.Cmd) error {
				cmd.Env = append(cmd.Env, o.environ(i)...)
				return start(cmd)
			}
		}
		return p
	}
}

// register registers the services at one node and waits until all nodes know them.
func (b *bed) register(t *testing.T) {
	require.NoError(t, b.Nodes[0].Register(t.Context(), b.service.URI(), false))
	for i := range b.Nodes {
		b.awaitAnswer(t, i, 30*time.Second)
	}
	require.NoError(t, b.AwaitReplicated(t.Context(), wholeIn))
}

// awaitAnswer waits until a call through a node is answered and returns how long that took.
func (b *bed) awaitAnswer(t testing.TB, node int, limit time.Duration) time.Duration {
	begin := time.Now()
	last := ""
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for ctx.Err() == nil {
		answer, err := b.Nodes[node].Client.Call(ctx, harness.Path("Counter", "first", "add"), []byte("0"))
		if err == nil && answer.Status == 200 {
			return time.Since(begin)
		}
		last = fmt.Sprintf("%v %d %s", err, answer.Status, answer.Body)
		pause(ctx, 10*time.Millisecond)
	}
	require.Failf(t, "no answer", "node %d answered no call within %s: %s", node+1, limit, last)
	return 0
}

// load starts a run. Zombies says that a fault may leave a node alive that others
// have given up.
func (b *bed) load(t *testing.T, zombies bool) *load.Run {
	b.runs++
	return load.Start(t.Context(), load.Config{
		Name: fmt.Sprintf("r%d", b.runs), Nodes: b.nodes, Results: b.results,
		Probes: 12, Pace: 30 * time.Millisecond, Patience: b.patience, Slack: b.slack, Zombies: zombies, Readers: b.readers,
	})
}

// end stops the cluster and keeps its files if that is asked for.
func (b *bed) end(t *testing.T, dir string) {
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	for _, n := range b.Nodes {
		if n.Process != nil && t.Failed() {
			t.Logf("end of the log of %s:\n%s", n.Name(), n.Process.LogTail(25))
		}
	}
	keep := os.Getenv("CLUSTER_KEEP")
	if keep == "" {
		return
	}
	for _, n := range b.Nodes {
		raw, err := os.ReadFile(filepath.Join(dir, n.Name(), "server.log"))
		if err == nil {
			err = os.WriteFile(filepath.Join(keep, filepath.Base(t.Name())+"-"+n.Name()+".log"), raw, 0o644)
		}
		if err != nil {
			t.Errorf("keep the log of %s: %v", n.Name(), err)
		}
	}
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// diskSize is how much each node gets where there are disks: enough for the ballast
// and a few hundred rounds.
func diskSize() int64 {
	if sandbox.DisksAvailable() != nil {
		return 0
	}
	return 4 << 30 // sparse
}
