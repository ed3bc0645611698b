package cluster

import (
	"context"
	"log/slog"
	"time"

	"platform/metadata"
)

// flowTick is the interval of checks whether all partitions have flow control. Nothing
// waits for the result.
const flowTick = 2 * time.Second

// RecordFlowControl records in the metadata that flow control is enabled, once all partitions
// are led with it at the same time. Until then, a partition that was led without it in between is
// checked for invocations in flight again: those that were found empty before another one declined
// may have got some. Only the node whose leads returns true does this.
func RecordFlowControl(ctx context.Context, store *metadata.Store, nodes *Nodes, leads func() bool, log *slog.Logger) {
	tick := time.NewTicker(flowTick)
	defer tick.Stop()
	for {
		if cluster, _ := store.Cluster(); cluster.FlowControl {
			return
		}
		if leads() && flowEverywhere(ctx, store, nodes) {
			if err := store.EnableFlowControl(ctx); err != nil && ctx.Err() == nil {
				log.Debug("could not record that flow control is enabled, retrying", "err", err)
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

// flowEverywhere reports whether flow control is enabled on all partitions, according to the
// statuses of all nodes.
func flowEverywhere(ctx context.Context, store *metadata.Store, nodes *Nodes) bool {
	layout, _ := store.Layout()
	statuses := nodes.Statuses(ctx, false)
	for _, node := range layout.Nodes {
		if statuses[node.ID] == nil {
			return false
		}
	}
	return haveFlow(statuses, len(layout.Partitions))
}

// haveFlow reports whether flow control is on in the settings of all nodes, and all partitions
// have serving leaders: they serve only after the partition was found empty. Nodes of older
// versions do not report the setting, and could not read that flow control is enabled.
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
