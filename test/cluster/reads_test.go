package cluster

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// suspicions are the faults after which a node may believe that it still leads.
var suspicions = []string{"stop-one", "isolate-one", "deafen-one", "mute-one", "flap-one", "transfer", "wipe-one", "hung-disk"}

// TestReadsUnderSuspicion reads state, outputs and strong queries at every node, the one
// in trouble included, while leaders are stopped, cut off, moved and replaced. All reads
// of a register, with the writes to it, must fit into one order.
func TestReadsUnderSuspicion(t *testing.T) {
	long := os.Getenv("CLUSTER_READS") != ""
	o := bedOptions{}
	names := []string{"stop-one", "isolate-one", "transfer"}
	if long {
		o.disks, names = diskSize(), suspicions
	}
	b := newBed(t, o)
	b.readers = true
	all := newSummary()
	defer func() { t.Log(all.String()) }()
	for n := range number(t, "CLUSTER_READS", len(names)) {
		for _, f := range faults {
			if f.name != names[n%len(names)] {
				continue
			}
			if err := f.possible(b); err != nil {
				t.Logf("without %s: %v", f.name, err)
				continue
			}
			if !all.add(f, b.round(t, f)) && t.Failed() {
				t.Fatalf("round %d, %s of %s, has left a cluster that cannot go on", n, f.name, strings.Join(names, ", "))
			}
		}
	}
	require.NoError(t, all.err())
}
