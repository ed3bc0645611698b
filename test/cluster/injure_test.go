package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"platform/test/harness/sandbox"
)

// probeLimit is how long a connection may take that should not come about.
const probeLimit = 150 * time.Millisecond

// pauseNode stops the process of a node for some time.
func (b *bed) pauseNode(ctx context.Context, i int, d time.Duration) error {
	p := b.Nodes[i].Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	b.nodes.Abandon(i)
	pause(ctx, d)
	stopped := p.Stopped()
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if !stopped {
		return fmt.Errorf("node %d was not stopped", i+1)
	}
	return nil
}

// cut drops what node i sends to the others (out) and what they send to it (in).
func (b *bed) cut(ctx context.Context, d time.Duration, i int, others []int, out, in bool) error {
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
	b.nodes.Abandon(i)
	if b.network.Hosts[i].Reaches(b.Nodes[others[0]].NodeAddress(), probeLimit) {
		return fmt.Errorf("node %d reaches node %d in spite of the cut", i+1, others[0]+1)
	}
	pause(ctx, d)
	return b.network.Heal()
}

// roll stops a node with SIGTERM and starts it again. Clients leave it as soon as its
// health route says so or nobody answers there.
func (b *bed) roll(ctx context.Context, i int) error {
	node := b.Nodes[i]
	if err := node.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	for node.Healthy(ctx) == nil {
		pause(ctx, 5*time.Millisecond)
	}
	b.nodes.Trouble(i)
	if err := node.Process.AwaitExit(30 * time.Second); err != nil {
		b.nodes.Abandon(i)
		node.Kill()
		return errors.Join(err, node.Restart(ctx))
	}
	b.nodes.Abandon(i)
	return node.Restart(ctx)
}

// slowDisk makes each write of a node wait.
func slowDisk(ctx context.Context, b *bed) error {
	i := b.victim()
	b.nodes.Abandon(i)
	during, end := context.WithTimeout(ctx, among(2*time.Second, 5*time.Second))
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
		return fmt.Errorf("the slow disk of node %d took %s at most", i+1, slowest)
	}
	return nil
}

// hungDisk makes a node's disk take nothing for some time. The node may give up,
// which is one way to let others lead, and is started again.
func hungDisk(ctx context.Context, b *bed) error {
	i := b.victim()
	if err := b.disks[i].Freeze(); err != nil {
		return err
	}
	b.nodes.Abandon(i)
	pause(ctx, among(2*time.Second, 15*time.Second))
	if err := b.disks[i].Thaw(); err != nil {
		return err
	}
	return b.revive(ctx, i)
}

// fullDisk leaves no space on a node's disk.
func fullDisk(ctx context.Context, b *bed) error {
	i := b.victim()
	b.nodes.Abandon(i)
	err := b.fill(ctx, b.disks[i], among(2*time.Second, 6*time.Second))
	if err := errors.Join(err, b.disks[i].Unfill()); err != nil {
		return err
	}
	return b.revive(ctx, i)
}

// fill keeps a disk full for some time, also if the node frees something.
func (b *bed) fill(ctx context.Context, d *sandbox.Disk, during time.Duration) error {
	full := false
	for begin := time.Now(); time.Since(begin) < during && ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
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

// revive starts a node that has ended, and leaves alone one that goes on. A process that
// gave up while its disk hung ends only when the disk is back, so this waits until it is
// healthy or gone.
func (b *bed) revive(ctx context.Context, i int) error {
	for begin := time.Now(); time.Since(begin) < wholeIn; {
		if b.Nodes[i].Process.AwaitExit(50*time.Millisecond) == nil {
			return b.Nodes[i].Restart(ctx)
		}
		if b.Nodes[i].Healthy(ctx) == nil {
			return nil
		}
	}
	return fmt.Errorf("node %d neither ended nor became healthy within %s", i+1, wholeIn)
}

// transferAll lets another node lead each partition, several at a time.
func transferAll(ctx context.Context, b *bed) error {
	state, err := b.Nodes[0].State(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(state.Partitions))
	var wg sync.WaitGroup
	for at, p := range state.Partitions {
		to := 0
		for _, r := range p.Replicas {
			if r.Node != p.Leader && r.CaughtUp {
				to = r.Node
			}
		}
		wg.Go(func() { errs[at] = b.transfer(ctx, p.ID, to) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// transfer asks a node to let another one lead a partition. The gossip may take a while
// to believe that a node is back; until then it is refused.
func (b *bed) transfer(ctx context.Context, partition, to int) error {
	url := b.Nodes[0].Admin() + "/cluster/partitions/" + strconv.Itoa(partition) + "/transfer?to=" + strconv.Itoa(to)
	for begin := time.Now(); ; pause(ctx, 50*time.Millisecond) {
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
		case resp.StatusCode != http.StatusConflict || time.Since(begin) > wholeIn || ctx.Err() != nil:
			return fmt.Errorf("transfer of partition %d to node %d: %s: %s", partition, to, resp.Status, body)
		}
	}
}
