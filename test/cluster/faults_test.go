package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"platform/test/harness"
	"platform/test/harness/sandbox"
)

// fault is a kind of fault.
type fault struct {
	name string
	// supported returns why the testbed does not support the fault, nil if it does.
	supported func(*testbed) error
	// inject injects the fault, verifies that it has the intended effect, and removes it;
	// nodes may still be recovering afterwards. It marks affected nodes in targets.
	inject func(context.Context, *testbed) error
	// quorumLoss means that no majority of nodes is available during the fault.
	quorumLoss bool
	// zombies means that a former leader may continue after the others have replaced it.
	zombies bool
	// mayExit means that nodes may exit because of the fault.
	mayExit bool
	// maxGap limits the time that a key is unavailable in the 99th percentile of the long
	// form; it depends on how the fault is detected. 0 for no limit.
	maxGap time.Duration
}

// faults are all kinds of faults.
var faults = []fault{
	{name: "kill-one", supported: requireThreeNodes, inject: killOne, maxGap: 5 * time.Second},
	{name: "kill-two", supported: requireThreeNodes, inject: killNodes(2), quorumLoss: true},
	{name: "kill-all", supported: requireNothing, inject: killNodes(100), quorumLoss: true},
	{name: "terminate-one", supported: requireThreeNodes, inject: terminateOne, maxGap: 5 * time.Second},
	{name: "suspend-one", supported: requireThreeNodes, inject: suspendOne, maxGap: 10 * time.Second},
	{name: "isolate-one", supported: requireNetwork, inject: isolateOne, zombies: true, maxGap: 10 * time.Second},
	{name: "unplug-one", supported: requireNetwork, inject: unplugOne, zombies: true, maxGap: 10 * time.Second},
	{name: "drop-inbound-one", supported: requireNetwork, inject: dropOneWay(false), zombies: true, maxGap: 10 * time.Second},
	{name: "drop-outbound-one", supported: requireNetwork, inject: dropOneWay(true), zombies: true, maxGap: 10 * time.Second},
	{name: "separate-pair", supported: requireNetwork, inject: separatePair, zombies: true, maxGap: 5 * time.Second},
	{name: "isolate-repeatedly", supported: requireNetwork, inject: isolateRepeatedly, zombies: true, maxGap: 15 * time.Second},
	{name: "wipe-one", supported: requireThreeNodes, inject: wipeOne, maxGap: 5 * time.Second},
	{name: "slow-disk", supported: requireDisks, inject: slowDisk, zombies: true, maxGap: 10 * time.Second},
	{name: "hung-disk", supported: requireDisks, inject: hungDisk, zombies: true, mayExit: true, maxGap: 20 * time.Second},
	{name: "full-disk", supported: requireDisks, inject: fullDisk, zombies: true, mayExit: true, maxGap: 20 * time.Second},
	{name: "transfer", supported: requireThreeNodes, inject: transferAll, maxGap: 2 * time.Second},
}

func requireNothing(*testbed) error { return nil }

func requireThreeNodes(b *testbed) error {
	if len(b.Nodes) < 3 {
		return errors.New("requires three nodes")
	}
	return nil
}

func requireNetwork(b *testbed) error {
	if b.network == nil {
		return sandbox.Available()
	}
	return requireThreeNodes(b)
}

func requireDisks(b *testbed) error {
	if b.disks == nil {
		return cmp.Or(sandbox.DisksAvailable(), errors.New("this testbed has no separate disks"))
	}
	return requireThreeNodes(b)
}

// randomDuration returns a random duration in [from, to).
func randomDuration(from, to time.Duration) time.Duration { return from + rand.N(to-from) }

// victim chooses a random node and marks it faulty.
func (b *testbed) victim() int {
	i := rand.IntN(len(b.Nodes))
	b.targets.MarkFaulty(i)
	return i
}

// killOne kills a node and restarts it after a delay.
func killOne(ctx context.Context, b *testbed) error {
	i := b.victim()
	if !b.Nodes[i].Process.Running() {
		return fmt.Errorf("node %d exited unexpectedly: %w", i+1, b.Nodes[i].Process.Err())
	}
	b.Nodes[i].Kill()
	b.targets.CancelRequests(i)
	harness.Sleep(ctx, randomDuration(200*time.Millisecond, 2*time.Second))
	return b.Nodes[i].Restart(ctx)
}

// killNodes kills n nodes, or all, concurrently. n must be a majority.
func killNodes(n int) func(context.Context, *testbed) error {
	return func(ctx context.Context, b *testbed) error {
		victims := rand.Perm(len(b.Nodes))[:min(n, len(b.Nodes))]
		for _, i := range victims {
			b.targets.MarkFaulty(i)
		}
		for _, i := range victims {
			b.Nodes[i].Kill()
			b.targets.CancelRequests(i)
		}
		harness.Sleep(ctx, randomDuration(0, time.Second))
		for _, i := range victims {
			if err := b.Nodes[i].Launch(); err != nil {
				return err
			}
		}
		return nil
	}
}

// terminateOne restarts a node gracefully. Clients are not notified: they detect by the health
// check that the node is leaving, as a load balancer does.
func terminateOne(ctx context.Context, b *testbed) error {
	return b.restartGracefully(ctx, rand.IntN(len(b.Nodes)))
}

// suspendOne suspends a process, as a machine without CPU time for it would.
func suspendOne(ctx context.Context, b *testbed) error {
	return b.suspendNode(ctx, b.victim(), randomDuration(time.Second, 6*time.Second))
}

// isolateOne disconnects a node from the other nodes, but not from its clients.
func isolateOne(ctx context.Context, b *testbed) error {
	i := b.victim()
	return b.blockTraffic(ctx, randomDuration(time.Second, 6*time.Second), i, b.others(i), true, true)
}

// dropOneWay drops all packets that a node sends to the others, or all that they send to it.
func dropOneWay(out bool) func(context.Context, *testbed) error {
	return func(ctx context.Context, b *testbed) error {
		i := b.victim()
		return b.blockTraffic(ctx, randomDuration(time.Second, 6*time.Second), i, b.others(i), out, !out)
	}
}

// separatePair disconnects two nodes from each other; both still reach the others.
func separatePair(ctx context.Context, b *testbed) error {
	pair := rand.Perm(len(b.Nodes))[:2]
	for _, i := range pair {
		b.targets.MarkFaulty(i)
	}
	return b.blockTraffic(ctx, randomDuration(time.Second, 6*time.Second), pair[0], pair[1:], true, true)
}

// isolateRepeatedly isolates a node several times.
func isolateRepeatedly(ctx context.Context, b *testbed) error {
	i := b.victim()
	for range 5 {
		if err := b.blockTraffic(ctx, randomDuration(100*time.Millisecond, time.Second), i, b.others(i), true, true); err != nil {
			return err
		}
		harness.Sleep(ctx, randomDuration(100*time.Millisecond, 700*time.Millisecond))
	}
	return nil
}

// unplugOne disconnects a node from all nodes and clients.
func unplugOne(ctx context.Context, b *testbed) error {
	i := b.victim()
	if err := b.network.Unplug(i); err != nil {
		return err
	}
	b.targets.CancelRequests(i)
	defer func() { _ = b.network.Heal() }()
	if b.network.Hosts[b.others(i)[0]].Reaches(b.Nodes[i].NodeAddress(), probeTimeout) {
		return errors.New("an unplugged node is reachable")
	}
	harness.Sleep(ctx, randomDuration(time.Second, 6*time.Second))
	return b.network.Heal()
}

// wipeOne kills a node, removes its data and restarts it.
func wipeOne(ctx context.Context, b *testbed) error {
	i := b.victim()
	b.Nodes[i].Kill()
	b.targets.CancelRequests(i)
	if err := b.Nodes[i].Wipe(); err != nil {
		return err
	}
	harness.Sleep(ctx, randomDuration(0, time.Second))
	return b.Nodes[i].Restart(ctx)
}

// others returns all nodes except i.
func (b *testbed) others(i int) []int {
	all := make([]int, len(b.Nodes))
	for j := range all {
		all[j] = j
	}
	return slices.Delete(all, i, i+1)
}
