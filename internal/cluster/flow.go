package cluster

import (
	"context"
	"log/slog"
	"time"

	"platform/metadata"
)

// flowTick is how often it is looked whether all partitions have flow control. Nothing
// waits for that.
const flowTick = 2 * time.Second

// RecordFlowControl notes in the metadata that flow control is enabled, once all
// partitions are led with it at the same time. Up to then each of them is asked again
// after it was led without, so that a partition that was asked before another one
// declined is not taken for enabled later.
// If several nodes did, that would be in vain, so the one whose leads reports true does.
func RecordFlowControl(ctx context.Context, store *metadata.Store, nodes *Nodes, leads func() bool, log *slog.Logger) {
	tick := time.NewTicker(flowTick)
	defer tick.Stop()
	for {
		if cluster, _ := store.Cluster(); cluster.FlowControl {
			return
		}
		if leads() && flowEverywhere(ctx, store, nodes) {
			if err := store.EnableFlowControl(ctx); err != nil && ctx.Err() == nil {
				log.Debug("enabled flow control is not noted yet", "err", err)
			} else if err == nil {
				log.Info("flow control is enabled on all partitions")
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// flowEverywhere asks all nodes whether flow control is enabled on all partitions.
func flowEverywhere(ctx context.Context, store *metadata.Store, nodes *Nodes) bool {
	layout, _ := store.Layout()
	answers := nodes.Statuses(ctx, false)
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
func haveFlow(nodes Statuses, partitions int) bool {
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
