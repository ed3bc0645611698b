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

// testbed is a cluster with the test services registered. With a sandbox, each node has
// its own host and, optionally, disk.
type testbed struct {
	*harness.Cluster
	targets      *load.Nodes
	network      *sandbox.Network // nil without a sandbox
	disks        []*sandbox.Disk
	results      *harness.Recorder
	service      *harness.Service
	runCount     int
	clockSlack   time.Duration // how much too early timers may fire
	directReads  bool          // also read state and outputs from the server directly
	largeCallers int           // clients with large bodies
	// retryTimeout limits the retries of a request and the wait for its effects.
	retryTimeout time.Duration
}

// testbedOptions configures a testbed; the default is a cluster of three nodes.
type testbedOptions struct {
	nodes    int
	env      map[string]string
	binary   string
	diskSize int64 // bytes of each node's disk; 0: no separate disks

	serviceEnv map[string]string  // added to the environment of the services
	nodeEnv    func(int) []string // additional environment of node i
	processEnv []string           // additional environment of all nodes, without the prefix of settings

	failpoints string // failpoints to activate; requires a binary built with failpoints
}

// newTestbed starts a cluster for the duration of t.
func newTestbed(t *testing.T, o testbedOptions) *testbed {
	b := prepareTestbed(t, o)
	require.NoError(t, b.Start(t.Context()))
	b.register(t)
	return b
}

// prepareTestbed starts everything except the nodes.
func prepareTestbed(t *testing.T, o testbedOptions) *testbed {
	b := &testbed{results: harness.RecorderFor(t), retryTimeout: time.Minute}
	if o.failpoints != "" {
		o.nodeEnv = func(int) []string { return []string{"FAILPOINTS=" + o.failpoints} }
	}
	if o.nodes == 0 {
		o.nodes = intSetting(t, "CLUSTER_NODES", 3)
	}
	bin, err := harness.Build("platform/test/chaos/services")
	require.NoError(t, err)
	host := ""
	if sandbox.Available() == nil {
		host = sandbox.Hub
		b.createSandbox(t, o)
	}
	serviceEnv := map[string]string{"RECORDER": b.results.URL()}
	maps.Copy(serviceEnv, o.serviceEnv)
	b.service = harness.ServiceFor(t, harness.ServiceOptions{Name: "services", Host: host, Command: []string{bin}, Env: serviceEnv})
	target, err := harness.TargetUnderTest()
	require.NoError(t, err)
	dir := t.TempDir()
	env := map[string]string{"LOG_DISABLE_ANSI_CODES": "true"}
	if levels := os.Getenv("CLUSTER_LOG"); levels != "" { // raft=debug shows each election
		env["LOG"] = levels
	}
	if o.diskSize > 0 { // nodes should also exit during the fault hung-disk
		env["DISK_TIMEOUT"] = "10s"
	}
	maps.Copy(env, o.env)
	b.Cluster, err = harness.NewCluster(target, harness.ClusterOptions{
		Nodes: o.nodes, Env: env, Dir: dir, Binary: o.binary, Placement: b.placement(o),
	})
	require.NoError(t, err)
	t.Cleanup(func() { b.cleanup(t, dir) })
	var clients []*harness.Client
	for _, n := range b.Nodes {
		clients = append(clients, n.Client)
	}
	b.targets = load.NewNodes(clients)
	return b
}

// createSandbox creates the hosts and disks.
func (b *testbed) createSandbox(t *testing.T, o testbedOptions) {
	var err error
	b.network, err = sandbox.NewNetwork(o.nodes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.network.Close()) })
	if o.diskSize == 0 {
		return
	}
	for i := range o.nodes {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		d, err := sandbox.NewDisk(dir, o.diskSize)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		b.disks = append(b.disks, d)
	}
}

// placement returns the function that places the nodes.
func (b *testbed) placement(o testbedOptions) func(int) harness.Placement {
	return func(i int) harness.Placement {
		p := harness.Placement{Start: (*exec.Cmd).Start}
		if b.network != nil {
			host := b.network.Hosts[i]
			p = harness.Placement{Host: host.IP, Ports: []int{8080, 9070, 5122}, Start: host.Start}
		}
		if b.disks != nil {
			p.Data = b.disks[i].Path
		}
		start := p.Start
		p.Start = func(cmd *exec.Cmd) error {
			cmd.Env = append(cmd.Env, o.processEnv...)
			if o.nodeEnv != nil {
				cmd.Env = append(cmd.Env, o.nodeEnv(i)...)
			}
			return start(cmd)
		}
		return p
	}
}

// register registers the services at one node and waits until calls through every node succeed.
func (b *testbed) register(t *testing.T) {
	require.NoError(t, b.Nodes[0].Register(t.Context(), b.service.URI(), false))
	for i := range b.Nodes {
		b.awaitCall(t, i, recoveryTimeout)
	}
	require.NoError(t, b.AwaitReplicated(t.Context(), recoveryTimeout))
}

// awaitCall waits until a call through a node succeeds and returns how long that took.
func (b *testbed) awaitCall(t testing.TB, node int, timeout time.Duration) time.Duration {
	begin := time.Now()
	last := ""
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for ctx.Err() == nil {
		resp, err := b.Nodes[node].Client.Call(ctx, harness.Path("Counter", "first", "add"), []byte("0"))
		if err == nil && resp.Status == 200 {
			return time.Since(begin)
		}
		last = fmt.Sprintf("%v %d %s", err, resp.Status, resp.Body)
		harness.Sleep(ctx, 10*time.Millisecond)
	}
	require.Failf(t, "no response", "no call through node %d succeeded within %s: %s", node+1, timeout, last)
	return 0
}

// startLoad starts a load run. Set zombies if a fault may leave a former leader running
// that the other nodes have replaced.
func (b *testbed) startLoad(t *testing.T, zombies bool) *load.Run {
	b.runCount++
	return load.Start(t.Context(), load.Config{
		Name: fmt.Sprintf("r%d", b.runCount), Nodes: b.targets, Results: b.results,
		Probes: 12, Interval: 30 * time.Millisecond, RetryTimeout: b.retryTimeout, ClockSlack: b.clockSlack, Zombies: zombies, DirectReads: b.directReads, Large: b.largeCallers,
	})
}

// cleanup stops the cluster and copies its logs to CLUSTER_KEEP if that is set.
func (b *testbed) cleanup(t *testing.T, dir string) {
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	for _, n := range b.Nodes {
		if n.Process != nil && t.Failed() {
			t.Logf("log of %s:\n%s", n.Name(), n.Process.LogTail(25))
		}
	}
	logDir := os.Getenv("CLUSTER_KEEP")
	if logDir == "" {
		return
	}
	for _, n := range b.Nodes {
		raw, err := os.ReadFile(filepath.Join(dir, n.Name(), "server.log"))
		if err == nil {
			err = os.WriteFile(filepath.Join(logDir, filepath.Base(t.Name())+"-"+n.Name()+".log"), raw, 0o644)
		}
		if err != nil {
			t.Errorf("copy the log of %s: %v", n.Name(), err)
		}
	}
}

// defaultDiskSize returns the size of a node's disk, which suffices for a few hundred
// rounds, or 0 if disks are not available.
func defaultDiskSize() int64 {
	if sandbox.DisksAvailable() != nil {
		return 0
	}
	return 4 << 30 // sparse
}
