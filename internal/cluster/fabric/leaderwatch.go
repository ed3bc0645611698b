package fabric

import (
	"platform/internal/raftgroup"
)

// leaderWatch detects through the local replica that a node no longer leads. Without it, a
// caller would wait for an isolated, deposed leader until the node is found unresponsive.
// The zero value detects nothing.
type leaderWatch struct {
	local     Local
	address   string
	addressOf func(raftgroup.Leader) string
}

func (w leaderWatch) changed() <-chan struct{} {
	if w.local == nil {
		return nil
	}
	return w.local.Changed()
}

// moved reports whether the local replica knows a leader other than the watched node.
func (w leaderWatch) moved() bool {
	if w.local == nil {
		return false
	}
	l := w.local.Leader()
	return l.Address != "" && w.addressOf(l) != w.address
}

// configuredAddress returns the address of a leader in the Raft configuration.
func configuredAddress(l raftgroup.Leader) string { return string(l.Address) }
