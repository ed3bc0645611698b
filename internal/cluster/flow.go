package node

import (
	"context"
	"time"

	nodepb "platform/proto/node"
)

// flowTick is how often it is looked whether all partitions have flow control. Nothing
// waits for that.
const flowTick = 2 * time.Second

// flowEnabled reports whether flow control was enabled on all partitions of the cluster.
func (n *Node) flowEnabled() bool {
	cluster, _ := n.metadata.Cluster()
	return cluster.FlowControl
}

// settleFlowControl notes in the metadata that flow control is enabled, once all
// partitions are led with it at the same time. Up to then each of them is asked again
// after it was led without, so that a partition that was asked before another one
// declined is not taken for enabled later.
func (n *Node) settleFlowControl(ctx context.Context) error {
	if !n.cfg.FlowControl() {
		return nil
	}
	tick := time.NewTicker(flowTick)
	defer tick.Stop()
	for !n.flowEnabled() {
		// One node is enough, and all have to agree with it in any case.
		if first := n.router.Replica(0); first != nil && first.Leading() && n.flowEverywhere(ctx) {
			if err := n.metadata.EnableFlowControl(ctx); err != nil && ctx.Err() == nil {
				n.log.Debug("enabled flow control is not noted yet", "err", err)
			} else if err == nil {
				n.log.Info("flow control is enabled on all partitions")
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// flowEverywhere asks all nodes whether flow control is enabled on all partitions.
func (n *Node) flowEverywhere(ctx context.Context) bool {
	layout, _ := n.metadata.Layout()
	answers := n.statuses(ctx)
	for _, node := range layout.Nodes {
		if answers[node.ID] == nil {
			return false
		}
	}
	return haveFlow(answers, len(layout.Partitions))
}

// haveFlow reports whether the settings of all nodes ask for flow control, and leaders
// of all partitions serve: they do so only after the partition was found empty. A node
// of an older version does not tell, and could not read that flow control is enabled.
func haveFlow(nodes map[uint32]*nodepb.StatusResponse, partitions int) bool {
	led := map[uint32]bool{}
	for _, st := range nodes {
		if !st.FlowControl {
			return false
		}
		for _, r := range st.Replicas {
			if r.Leading {
				led[r.Partition] = true
			}
		}
	}
	return len(led) == partitions
}
