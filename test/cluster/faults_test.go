package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"platform/test/harness/sandbox"
)

// fault is one way to break a cluster.
type fault struct {
	name string
	// possible says why a bed cannot have the fault.
	possible func(*bed) error
	// inject breaks the cluster, makes sure that it is broken, and mends it; nodes may
	// still be on their way back then. Nodes in trouble are told to b.nodes.
	inject func(context.Context, *bed) error
	// outage says that no majority is left meanwhile.
	outage bool
	// zombies says that a node may go on that the others have given up.
	zombies bool
	// gap is how long a key may stay without an answer, which depends on how the
	// fault is noticed: 0 for no limit.
	gap time.Duration
}

// faults are all that a bed may be put through.
var faults = []fault{
	{name: "kill-one", possible: several, inject: killOne, gap: 5 * time.Second},
	{name: "kill-two", possible: several, inject: killSome(2), outage: true},
	{name: "kill-all", possible: always, inject: killSome(100), outage: true},
	{name: "terminate-one", possible: several, inject: terminateOne, gap: 5 * time.Second},
	{name: "stop-one", possible: several, inject: stopOne, gap: 10 * time.Second},
	{name: "isolate-one", possible: hosts, inject: isolateOne, zombies: true, gap: 10 * time.Second},
	{name: "unplug-one", possible: hosts, inject: unplugOne, zombies: true, gap: 10 * time.Second},
	{name: "deafen-one", possible: hosts, inject: oneWay(false), zombies: true, gap: 10 * time.Second},
	{name: "mute-one", possible: hosts, inject: oneWay(true), zombies: true, gap: 10 * time.Second},
	{name: "bridge", possible: hosts, inject: bridge, zombies: true, gap: 10 * time.Second},
	{name: "flap-one", possible: hosts, inject: flapOne, zombies: true, gap: 15 * time.Second},
	{name: "wipe-one", possible: several, inject: wipeOne, gap: 5 * time.Second},
	{name: "slow-disk", possible: disks, inject: slowDisk, zombies: true, gap: 10 * time.Second},
	{name: "hung-disk", possible: disks, inject: hungDisk, zombies: true, gap: 20 * time.Second},
	{name: "full-disk", possible: disks, inject: fullDisk, zombies: true, gap: 20 * time.Second},
	{name: "transfer", possible: several, inject: transferAll, gap: 2 * time.Second},
}

func always(*bed) error { return nil }

func several(b *bed) error {
	if len(b.Nodes) < 3 {
		return errors.New("needs three nodes")
	}
	return nil
}

func hosts(b *bed) error {
	if b.network == nil {
		return sandbox.Available()
	}
	return several(b)
}

func disks(b *bed) error {
	if b.disks == nil {
		return cmp.Or(sandbox.DisksAvailable(), errors.New("this bed has no disks of its own"))
	}
	return several(b)
}

// among returns a random time.
func among(from, to time.Duration) time.Duration { return from + rand.N(to-from) }

// victim is a random node; clients that roam leave it.
func (b *bed) victim() int {
	i := rand.IntN(len(b.Nodes))
	b.nodes.Trouble(i)
	return i
}

// killOne kills a node and starts it again a little later.
func killOne(ctx context.Context, b *bed) error {
	i := b.victim()
	if !b.Nodes[i].Process.Running() {
		return fmt.Errorf("node %d has ended by itself: %w", i+1, b.Nodes[i].Process.Err())
	}
	b.Nodes[i].Kill()
	b.nodes.Abandon(i)
	pause(ctx, among(200*time.Millisecond, 2*time.Second))
	return b.Nodes[i].Restart(ctx)
}

// killSome kills so many nodes at once that no majority is left.
func killSome(n int) func(context.Context, *bed) error {
	return func(ctx context.Context, b *bed) error {
		victims := rand.Perm(len(b.Nodes))[:min(n, len(b.Nodes))]
		for _, i := range victims {
			b.nodes.Trouble(i)
		}
		for _, i := range victims {
			b.Nodes[i].Kill()
			b.nodes.Abandon(i)
		}
		pause(ctx, among(0, time.Second))
		for _, i := range victims {
			if err := b.Nodes[i].Launch(); err != nil {
				return err
			}
		}
		return nil
	}
}

// terminateOne stops a node in order and starts it again. Nobody is told: clients
// notice by themselves that it is not healthy, as a load balancer does.
func terminateOne(ctx context.Context, b *bed) error {
	return b.roll(ctx, rand.IntN(len(b.Nodes)))
}

// stopOne stops a process as if the machine had no time for it.
func stopOne(ctx context.Context, b *bed) error {
	return b.pauseNode(ctx, b.victim(), among(time.Second, 6*time.Second))
}

// isolateOne lets a node reach its clients but no other node.
func isolateOne(ctx context.Context, b *bed) error {
	i := b.victim()
	return b.cut(ctx, among(time.Second, 6*time.Second), i, b.others(i), true, true)
}

// oneWay loses all that a node sends to the others, or all that they send to it.
func oneWay(out bool) func(context.Context, *bed) error {
	return func(ctx context.Context, b *bed) error {
		i := b.victim()
		return b.cut(ctx, among(time.Second, 6*time.Second), i, b.others(i), out, !out)
	}
}

// bridge keeps two nodes from each other, which both reach the third.
func bridge(ctx context.Context, b *bed) error {
	two := rand.Perm(len(b.Nodes))[:2]
	for _, i := range two {
		b.nodes.Trouble(i)
	}
	return b.cut(ctx, among(time.Second, 6*time.Second), two[0], two[1:], true, true)
}

// flapOne isolates a node again and again.
func flapOne(ctx context.Context, b *bed) error {
	i := b.victim()
	for range 5 {
		if err := b.cut(ctx, among(100*time.Millisecond, time.Second), i, b.others(i), true, true); err != nil {
			return err
		}
		pause(ctx, among(100*time.Millisecond, 700*time.Millisecond))
	}
	return nil
}

// unplugOne cuts a node off from everybody.
func unplugOne(ctx context.Context, b *bed) error {
	i := b.victim()
	if err := b.network.Unplug(i); err != nil {
		return err
	}
	b.nodes.Abandon(i)
	defer func() { _ = b.network.Heal() }()
	if b.network.Hosts[b.others(i)[0]].Reaches(b.Nodes[i].NodeAddress(), probeLimit) {
		return errors.New("an unplugged node is reached")
	}
	pause(ctx, among(time.Second, 6*time.Second))
	return b.network.Heal()
}

// wipeOne kills a node, removes its data and starts it.
func wipeOne(ctx context.Context, b *bed) error {
	i := b.victim()
	b.Nodes[i].Kill()
	b.nodes.Abandon(i)
	if err := b.Nodes[i].Wipe(); err != nil {
		return err
	}
	pause(ctx, among(0, time.Second))
	return b.Nodes[i].Restart(ctx)
}

// others are all nodes but one.
func (b *bed) others(i int) []int {
	all := make([]int, len(b.Nodes))
	for j := range all {
		all[j] = j
	}
	return slices.Delete(all, i, i+1)
}
