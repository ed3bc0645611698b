package node

import (
	"context"

	"platform/partition"
)

// rules is where partitions get the rule book from, nil without flow control: then
// nothing would ever look at it.
func (n *Node) rules() partition.RuleSource {
	if !n.cfg.FlowControl() {
		return nil
	}
	return n.metadata
}

// awaitRules returns when the partitions that are led here have the rule book of that
// version, or when ctx ends. Those led elsewhere get it as soon as the change of the
// metadata reaches their nodes.
func (n *Node) awaitRules(ctx context.Context, version uint32) {
	for p := range n.router.Replicas() {
		p.AwaitRules(ctx, version)
	}
}
