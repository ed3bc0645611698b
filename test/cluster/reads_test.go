package cluster

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// leaderFaults are faults after which a node may still believe that it is the leader.
var leaderFaults = []string{"suspend-one", "isolate-one", "drop-inbound-one", "drop-outbound-one", "isolate-repeatedly", "transfer", "wipe-one", "hung-disk"}

// TestReadsDuringLeaderFaults reads state, outputs and strong queries at every node,
// including faulty ones, while leaders are suspended, isolated, moved and replaced. All
// reads and writes of a register must be linearizable.
func TestReadsDuringLeaderFaults(t *testing.T) {
	long := os.Getenv("CLUSTER_READS") != ""
	o := testbedOptions{}
	names := []string{"suspend-one", "isolate-one", "transfer"}
	if long {
		o.diskSize, names = defaultDiskSize(), leaderFaults
	}
	b := newTestbed(t, o)
	b.directReads = true
	total := newSummary()
	defer func() { t.Log(total.String()) }()
	for n := range intSetting(t, "CLUSTER_READS", len(names)) {
		for _, f := range faults {
			if f.name != names[n%len(names)] {
				continue
			}
			if err := f.supported(b); err != nil {
				t.Logf("skipped %s: %v", f.name, err)
				continue
			}
			if !total.add(f, b.round(t, f)) && t.Failed() {
				t.Fatalf("round %d: the cluster did not recover from %s", n, f.name)
			}
		}
	}
	require.NoError(t, total.err())
}
