package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

const (
	// largeCallers is the number of clients with large bodies.
	largeCallers = 6
	// largeMemory bounds the resident memory of a node.
	largeMemory = 1 << 30
	// largeDisk bounds the size of a node's data once nothing large is stored any longer. A partition of a cluster
	// retains 64 MiB of its log.
	largeDisk = 1 << 30
)

// TestLargeBodiesDuringFaults injects faults while some clients send and receive bodies, results of steps and values of
// up to 32 MiB: each byte of each response is checked, and none is lost or takes effect twice. The memory of the nodes is
// bounded, and their disks are reclaimed.
func TestLargeBodiesDuringFaults(t *testing.T) {
	long := os.Getenv("CLUSTER_LARGE") != ""
	for _, s := range []struct {
		name   string
		nodes  int
		faults []string
	}{
		{"ClusterOfThree", 3, []string{"kill-one", "wipe-one"}},
		{"SingleNode", 1, []string{"kill-all"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			o := snapshotOptions(t)
			o.nodes, o.env = s.nodes, map[string]string{
				"DEFAULT_NUM_PARTITIONS": "4", "WORKER__INVOKER__MEMORY_LIMIT": "128MiB",
			}
			o.processEnv = []string{fmt.Sprintf("GOMEMLIMIT=%d", largeMemory*9/10)}
			b := newTestbed(t, o)
			b.directReads, b.largeCallers, b.retryTimeout = true, largeCallers, 5*time.Minute
			kinds := b.largeFaults(t, s.faults, long)
			total := newSummary()
			defer func() { t.Log(total.String()) }()
			for n := range intSetting(t, "CLUSTER_LARGE", len(kinds)) {
				f := kinds[n%len(kinds)]
				if !total.add(f, b.round(t, f)) && t.Failed() {
					t.Fatalf("round %d: the cluster did not recover from %s", n, f.name)
				}
				b.requireMemory(t, largeMemory)
			}
			require.NoError(t, total.err())
			b.requireReclaimed(t, largeDisk)
		})
	}
}

// largeFaults returns the faults to inject: those with the given names, or all that the testbed supports.
func (b *testbed) largeFaults(t *testing.T, names []string, all bool) (kinds []fault) {
	if all {
		return b.supportedFaults()
	}
	for _, name := range names {
		for _, f := range faults {
			if f.name == name {
				kinds = append(kinds, f)
			}
		}
	}
	require.Len(t, kinds, len(names))
	return kinds
}

// supportedFaults returns all faults that the testbed supports. On a single node they all end its quorum.
func (b *testbed) supportedFaults() (kinds []fault) {
	for _, f := range faults {
		if f.supported(b) == nil {
			kinds = append(kinds, f)
		}
	}
	if len(b.Nodes) == 1 {
		kinds = append(kinds, fault{name: "suspend-all", inject: suspendOne, quorumLoss: true})
		if b.disks != nil {
			kinds = append(kinds, fault{name: "slow-disk", inject: slowDisk, quorumLoss: true},
				fault{name: "hung-disk", inject: hungDisk, quorumLoss: true, mayExit: true},
				fault{name: "full-disk", inject: fullDisk, quorumLoss: true, mayExit: true})
		}
	}
	return kinds
}

var peakMemory = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// requireMemory checks the highest resident memory of each process so far.
func (b *testbed) requireMemory(t *testing.T, limit int) {
	for _, n := range b.Nodes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Process.PID()))
		if err != nil {
			t.Logf("cannot read memory usage: %v", err)
			return
		}
		found := peakMemory.FindSubmatch(status)
		require.NotNil(t, found)
		kib, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		t.Logf("%s: peak %d MiB resident", n.Name(), kib>>10)
		require.Less(t, kib<<10, limit, n.Name())
	}
}

// requireReclaimed waits until the data of each node has less than limit bytes.
func (b *testbed) requireReclaimed(t *testing.T, limit int64) {
	for _, n := range b.Nodes {
		var size int64
		for begin := time.Now(); ; harness.Sleep(t.Context(), time.Second) {
			if size = dataSize(n.Data()); size < limit {
				break
			}
			if time.Since(begin) > 5*time.Minute {
				require.Failf(t, "disk not reclaimed", "%s has %d MiB", n.Name(), size>>20)
			}
		}
		t.Logf("%s: %d MiB on disk", n.Name(), size>>20)
	}
}

// dataSize returns the size of the files in a directory, whose files may be removed meanwhile.
func dataSize(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // it was removed
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size
}
