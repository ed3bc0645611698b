package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"platform/internal/ids"
	"platform/test/harness"
	"platform/test/harness/sandbox"
)

// probeTimeout limits a connection attempt that must fail.
const probeTimeout = 150 * time.Millisecond

// suspendNode stops the process of a node with SIGSTOP for a duration.
func (b *testbed) suspendNode(ctx context.Context, i int, d time.Duration) error {
	p := b.Nodes[i].Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	b.targets.CancelRequests(i)
	harness.Sleep(ctx, d)
	stopped := p.Stopped()
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if !stopped {
		return fmt.Errorf("node %d was not stopped", i+1)
	}
	return nil
}

// blockTraffic drops what node i sends to the others (out) and what they send to it (in).
func (b *testbed) blockTraffic(ctx context.Context, d time.Duration, i int, others []int, out, in bool) error {
	defer func() { _ = b.network.Heal() }()
	for _, j := range others {
		if out {
			if err := b.network.Block(i, j); err != nil {
				return err
			}
		}
		if in {
			if err := b.network.Block(j, i); err != nil {
				return err
			}
		}
	}
	b.targets.CancelRequests(i)
	if b.network.Hosts[i].Reaches(b.Nodes[others[0]].NodeAddress(), probeTimeout) {
		return fmt.Errorf("node %d reaches node %d although traffic is blocked", i+1, others[0]+1)
	}
	harness.Sleep(ctx, d)
	return b.network.Heal()
}

// restartGracefully restarts a node with SIGTERM. It marks the node faulty when its
// health check fails, as a load balancer does.
func (b *testbed) restartGracefully(ctx context.Context, i int) error {
	node := b.Nodes[i]
	if err := node.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	for node.Healthy(ctx) == nil {
		harness.Sleep(ctx, 5*time.Millisecond)
	}
	b.targets.MarkFaulty(i)
	// Calls that wait for long have three quarters of the shutdown timeout, a minute.
	if err := node.Process.AwaitExit(75 * time.Second); err != nil {
		b.targets.CancelRequests(i)
		node.Kill()
		return errors.Join(err, node.Restart(ctx))
	}
	b.targets.CancelRequests(i)
	return node.Restart(ctx)
}

// slowDisk delays each write of a node.
func slowDisk(ctx context.Context, b *testbed) error {
	i := b.victim()
	b.targets.CancelRequests(i)
	during, end := context.WithTimeout(ctx, randomDuration(2*time.Second, 5*time.Second))
	defer end()
	slow := make(chan error, 1)
	go func() { slow <- b.disks[i].Slow(during, 150*time.Millisecond, 50*time.Millisecond) }()
	var slowest time.Duration
	var probeErr error
	for during.Err() == nil && probeErr == nil {
		var took time.Duration
		took, probeErr = b.disks[i].SyncTime()
		slowest = max(slowest, took)
	}
	if err := errors.Join(<-slow, probeErr); err != nil {
		return err
	}
	if slowest < 50*time.Millisecond {
		return fmt.Errorf("the slow disk of node %d took at most %s", i+1, slowest)
	}
	return nil
}

// hungDisk blocks a node's disk. The node may exit, which lets others lead, and is then
// restarted.
func hungDisk(ctx context.Context, b *testbed) error {
	i := b.victim()
	if err := b.disks[i].Freeze(); err != nil {
		return err
	}
	b.targets.CancelRequests(i)
	harness.Sleep(ctx, randomDuration(2*time.Second, 15*time.Second))
	if err := b.disks[i].Thaw(); err != nil {
		return err
	}
	return b.restartIfExited(ctx, i)
}

// fullDisk fills a node's disk.
func fullDisk(ctx context.Context, b *testbed) error {
	i := b.victim()
	b.targets.CancelRequests(i)
	err := b.keepFull(ctx, b.disks[i], randomDuration(2*time.Second, 6*time.Second))
	if err := errors.Join(err, b.disks[i].Unfill()); err != nil {
		return err
	}
	return b.restartIfExited(ctx, i)
}

// keepFull keeps a disk full for a duration, even if the node frees space.
func (b *testbed) keepFull(ctx context.Context, d *sandbox.Disk, duration time.Duration) error {
	full := false
	for begin := time.Now(); time.Since(begin) < duration && ctx.Err() == nil; harness.Sleep(ctx, 50*time.Millisecond) {
		if err := d.Fill(0); err != nil {
			return err
		}
		free, err := d.Free()
		if err != nil {
			return err
		}
		full = full || free < 1<<20
	}
	if !full {
		return errors.New("the disk did not become full")
	}
	return nil
}

// restartIfExited restarts a node that has exited. A process that gave up while its disk
// was blocked exits only when the disk is available again, so this waits until the node
// is healthy or has exited.
func (b *testbed) restartIfExited(ctx context.Context, i int) error {
	for begin := time.Now(); time.Since(begin) < recoveryTimeout; {
		if b.Nodes[i].Process.AwaitExit(50*time.Millisecond) == nil {
			return b.Nodes[i].Restart(ctx)
		}
		if b.Nodes[i].Healthy(ctx) == nil {
			return nil
		}
	}
	return fmt.Errorf("node %d neither exited nor became healthy within %s", i+1, recoveryTimeout)
}

// transferAll transfers the leadership of all partitions concurrently.
func transferAll(ctx context.Context, b *testbed) error {
	targets, err := b.transferTargets(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(targets))
	var wg sync.WaitGroup
	for partition, to := range targets {
		wg.Go(func() { errs[partition] = b.transfer(ctx, partition, to) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// transferTargets returns a follower of each partition that has caught up. A busy machine can
// leave a partition without one, or without a leader, for a while.
func (b *testbed) transferTargets(ctx context.Context) ([]ids.Node, error) {
	for begin := time.Now(); ; harness.Sleep(ctx, 50*time.Millisecond) {
		state, err := b.Nodes[0].State(ctx)
		targets := make([]ids.Node, len(state.Partitions))
		for _, p := range state.Partitions {
			for _, r := range p.Replicas {
				if p.Leader != 0 && r.Node != p.Leader && r.Answers && r.CaughtUp {
					targets[p.ID] = r.Node
				}
			}
		}
		if err == nil && len(targets) > 0 && !slices.Contains(targets, 0) {
			return targets, nil
		}
		if time.Since(begin) > recoveryTimeout || ctx.Err() != nil {
			return nil, errors.Join(err, fmt.Errorf("a partition has no follower that has caught up: %+v", state.Partitions))
		}
	}
}

// transfer transfers the leadership of a partition to a node. It retries conflicts, since
// gossip may take a while to report a restarted node as alive, and failures of the server.
func (b *testbed) transfer(ctx context.Context, partition int, to ids.Node) error {
	url := b.Nodes[0].Admin() + "/cluster/partitions/" + strconv.Itoa(partition) + "/transfer?to=" + strconv.Itoa(int(to)) // a form that all releases accept
	for begin := time.Now(); ; harness.Sleep(ctx, 50*time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			return err
		case resp.StatusCode == http.StatusOK:
			return nil
		case resp.StatusCode != http.StatusConflict && resp.StatusCode < http.StatusInternalServerError || time.Since(begin) > recoveryTimeout || ctx.Err() != nil:
			return fmt.Errorf("transfer of partition %d to node %s: %s: %s", partition, to, resp.Status, body)
		}
	}
}
